// The plain data of the shard's interface (ps/shard/shard.h): requests, events and snapshots.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/tensor/parameter_arena.h"
#include "models/tensor/tensor.h"
#include "ps/shard/consistency.h"
#include "ps/shard/gradient_codec.h"

namespace syncopate::ps {

// Identifies a push of a worker. A push is applied once, however often it is sent. A worker that is
// started again is a new incarnation. A worker's pushes of one step have one sequence; sequences
// ascend within an incarnation and may have gaps.
struct PushId {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;
};

// Memory of a worker for a bucket's values: [bucket] f32 or [bucket] bf16. bf16 memory requires a
// shard with ValuesFormat::kBf16. Such a shard also rounds the values that it writes to f32 memory.
struct AnswerMemory {
  AnswerMemory() = default;
  template <std::convertible_to<std::span<float>> Values>
  AnswerMemory(Values&& values) : f32(values) {}  // NOLINT(google-explicit-constructor)
  explicit AnswerMemory(std::span<std::uint16_t> words) : bf16(words) {}

  std::size_t size() const noexcept { return f32.size() + bf16.size(); }
  bool empty() const noexcept { return size() == 0; }

  std::span<float> f32;
  std::span<std::uint16_t> bf16;
};

// A time since a moment that the caller chooses. A shard has no clock: under kQuorum it learns the
// time from pushes and from Shard::advance_to().
using ShardTime = std::chrono::nanoseconds;

struct PushRequest {
  PushId id;
  BucketId bucket = 0;
  std::uint64_t version = 0;  // of the values that the gradient was computed from; 0: unknown
  float learning_rate = 0.0F;
  // Used under kQuorum: the time of arrival, and the displacement's number of samples, which is its
  // weight.
  ShardTime arrived{0};
  std::int64_t samples = 0;
  EncodedGradient gradient;  // borrowed until kApplied, kDropped or kCancelled
  // Memory for the worker's next values, borrowed until kAnswered or kCancelled. The shard copies
  // the values to this memory as soon as the consistency rule lets the worker read. Empty if the
  // worker reads the shard's own memory; then no kAnswered follows.
  AnswerMemory values;
  std::uint64_t token = 0;  // chosen by the caller; returned in events
};

struct ReadRequest {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  BucketId bucket = 0;
  AnswerMemory values;  // borrowed until kAnswered or kCancelled
  std::uint64_t token = 0;
};

// An event of a request. A push gets kApplied or kDropped, and then, if it asked for values,
// kAnswered or kCancelled. A push that is cancelled before it is applied or dropped gets only
// kCancelled. A read gets kAnswered or kCancelled.
struct ShardEvent {
  enum class Kind : std::uint8_t {
    kApplied,  // the values include the push; its gradient is no longer used
    kDropped,  // the push is late or a duplicate and is not applied; its gradient is no longer used
    kAnswered,        // the requested values have been copied
    kCancelled,       // the worker has left: the request is dropped and its memory no longer used
    kSnapshotCopied,  // the bucket was copied for a snapshot; the snapshot may be withdrawn by now
  };
  Kind kind = Kind::kApplied;
  BucketId bucket = 0;
  WorkerId worker = 0;
  std::uint64_t sequence = 0;  // of the push; 0 for a read
  std::uint64_t token = 0;     // of the request; for kSnapshotCopied the number of the snapshot
  // For kApplied: the version after the update. Otherwise: the version of the values at the event.
  std::uint64_t version = 0;
  std::uint64_t staleness = 0;  // set for kApplied
  // Set for kDropped if the push was dropped because it was sent twice. The push that was sent
  // first has its own events. Not set for a push that a restored snapshot contains: its batch must
  // be trained again if the push was dropped before the snapshot.
  bool is_duplicate = false;
};

// The clock of a worker. Values with this clock include every push of this incarnation up to
// `sequence`.
struct WorkerClock {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;
  bool operator==(const WorkerClock&) const = default;
};

// A copy of everything that a shard needs to continue training. Snapshots and checkpoints contain
// it. Tensors: [elements of all buckets] f32, in the order of Shard::values(). The mean square of
// adaptive delay compensation is not copied, because about ten updates are enough to estimate it
// again.
struct ShardSnapshot {
  struct Variable {
    std::uint64_t version = 1;
    std::vector<WorkerClock> workers;  // clocks of all workers that the bucket knows
  };
  Tensor values{};
  std::vector<Tensor> slots{};
  std::vector<Variable> buckets{};
};

}  // namespace syncopate::ps
