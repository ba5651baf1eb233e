// What the communication thread does with MPI: starts the operations it is given, keeps testing
// them, says what has ended. Nothing of MPI's overlaps unless somebody calls MPI_Test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "models/tensor/tensor.h"

namespace syncopate {

// Its caller stands and waits for it: an all_gather, or a broadcast of less than 2 GiB.
struct SmallOperation {
  std::span<const std::byte> mine;  // all_gather
  std::span<std::byte> bytes;       // all of it
  int root = -1;                    // of a broadcast; -1: all_gather
};

// One thread at a time, while no other one calls MPI. What fails throws PeerError: it fails because
// of the network or of another rank.
class MpiRequests {
 public:
  MpiRequests();  // every rank calls it
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;
  ~MpiRequests();

  // Sums are started chunk by chunk, in place, one sum after the other; they end in that order.
  bool has_room() const noexcept;
  // Starts the next chunk of the sum that is being started. True when it was the last one.
  bool start_chunk(const Tensor& tensor);
  // The number of sums that have ended since the last call.
  int test_sums();

  void start_small(const SmallOperation& operation);  // after the one before it has ended
  bool test_small();                                  // whether it has ended

  // Counts what test_sums() and test_small() saw: changes whenever something moved.
  std::uint64_t completed() const noexcept;
  bool idle() const noexcept;

 private:
  struct State;  // MPI's handles: its header stays out of ours
  std::unique_ptr<State> state_;
};

}  // namespace syncopate
