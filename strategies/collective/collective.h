// The collective operations between the replicas of a job: all-reduce, all-gather and broadcast.
// Each replica, a thread of this process or of another process, is a rank and has its own
// Collective. Every rank calls the same operations in the same order and gets the same bits.
//
// The order of additions depends only on the element's index in the arena and on the number n of
// ranks. The arena is divided into blocks of kBlockElements elements. The sum of block b starts at
// rank (b + 1) mod n and continues in the order of ranks. bf16 is rounded after each addition.
// Therefore `local`, `ring` and the shard's sum agree bit for bit for any buckets, transport and
// timing. `mpi` promises only that every rank gets the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/tensor/tensor.h"
#include "ps/shard/stale_gradients.h"

namespace syncopate {

// Identifies a started all-reduce, for Collective::wait().
using WorkId = std::uint64_t;

// The communication of one rank since the collective was made: wall-clock times in seconds, and
// bytes.
struct CommunicationTimes {
  double under_way_seconds = 0.0;  // time while an all-reduce was in progress
  double exposed_seconds = 0.0;    // time that the caller spent in all_reduce() or wait()
  // The part of exposed_seconds that the caller spent waiting for slower replicas and not for data.
  // Absent if the collective does not measure this part.
  std::optional<double> peers_wait_seconds;
  // Bytes exchanged with other processes. Absent if the collective does not count bytes, for
  // example because it uses shared memory.
  std::optional<std::int64_t> bytes_sent;
  std::optional<std::int64_t> bytes_received;
  // Steps with gradients that came too late. Absent if the job drops no gradients.
  std::optional<ps::DroppedSteps> dropped_steps = {};
};

// The collective operations of one rank. One thread only, except for abort().
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  // Returns this rank's gradient block, [elements] f32. Tensors inside the block are reduced
  // without a copy.
  virtual const Tensor& block() const noexcept = 0;

  // Starts to sum the tensor over all ranks, in place. The tensor is f32 or bf16, in host memory;
  // its first element is element `index` of the arena. The tensor must not be used until wait()
  // returns. Up to 256 all-reduces may be in progress. Throws PeerError.
  virtual WorkId all_reduce(const Tensor& tensor, std::int64_t index) = 0;
  // Waits until this rank's tensor contains the sum. Throws PeerError if a rank has died, or has
  // not called the same operation within the timeout; the message names the rank.
  virtual void wait(WorkId work) = 0;

  // All-gather: stores the bytes of rank r at all[r * mine.size() ..], at most kMostGatheredBytes
  // per rank. Blocking; all-reduces may be in progress. Throws PeerError.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Broadcast: copies the bytes of rank `root` to all ranks. The length must be equal on all ranks.
  // Blocking. Throws PeerError.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  // Ends the collective: every call that waits, now or later, throws PeerError(reason). Any thread
  // may call it.
  virtual void abort(std::string_view reason) noexcept = 0;

  virtual CommunicationTimes times() const noexcept = 0;

  static constexpr std::size_t kMostGatheredBytes = std::size_t{64} << 10;
};

// The argument checks of the collectives that have a communication thread. They throw ShapeError;
// the message says what was expected.
void check_all_reduce(const Tensor& tensor);
void check_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int size);
void check_broadcast(int root, int size);

}  // namespace syncopate
