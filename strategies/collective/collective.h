// Sums and copies between the replicas of a job. One Collective per rank; a rank is a replica, be
// it a thread of this process or of another one. Every rank calls the same operations in the same
// order and gets the same bits.
//
// The order of additions is a function of the element's index in the arena and of the number of
// ranks alone: block b of kBlockElements elements is summed from rank (b + 1) mod n onwards, one
// rank after the other, and bf16 is rounded after each addition. So `local`, `ring` and the shard's
// sum agree bit for bit, whatever the buckets, the transport or the timing. `mpi` promises only
// that every rank gets the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/tensor/sums.h"
#include "models/tensor/tensor.h"

namespace syncopate {

// A started all-reduce, for wait().
using WorkId = std::uint64_t;

// Wall time of this rank, since it was made.
struct CommunicationTimes {
  double under_way_seconds = 0.0;  // at least one all-reduce had begun and not ended
  double exposed_seconds = 0.0;    // of that, the caller stood in all_reduce() or wait()
  // Of that, for replicas that came later, not for bytes; nothing: nobody can tell.
  std::optional<double> peers_wait_seconds;
  // To and from other processes; nothing: not counted, as in memory that all replicas share.
  std::optional<std::int64_t> bytes_sent;
  std::optional<std::int64_t> bytes_received;
};

// One thread only, but for abort().
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  // [elements] f32, this rank's gradient block: tensors that lie in it travel without a copy.
  virtual const Tensor& block() const noexcept = 0;

  // Starts to sum the tensor over all ranks, in place; f32 or bf16, on the host. Its first element
  // is element `index` of the arena. The tensor is the collective's until wait(). Up to 256 may be
  // under way. Throws PeerError.
  virtual WorkId all_reduce(const Tensor& tensor, std::int64_t index) = 0;
  // Returns when this rank's tensor holds the sum. Throws PeerError: a rank died, or one did not
  // come within the collective's patience (then named).
  virtual void wait(WorkId work) = 0;

  // Small and blocking, beside all-reduces under way: all[r * mine.size() ..] = rank r's bytes. At
  // most kMostGatheredBytes per rank. Throws PeerError.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Blocking; any length, the same on all ranks. Throws PeerError.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  // From any thread: every call that waits, now or later, throws PeerError(reason).
  virtual void abort(std::string_view reason) noexcept = 0;

  virtual CommunicationTimes times() const noexcept = 0;

  static constexpr std::size_t kMostGatheredBytes = std::size_t{64} << 10;
};

}  // namespace syncopate
