// Variables that several workers share: values, optimizer slots and versions of a set of buckets,
// and the rule that says when a bucket is updated. A pure state machine without sockets, threads or
// clock: the caller's threads do the work, be they replicas of one task or a server's.
//
//   worker:  read(bucket) -> values, version ... gradient ... push(worker, bucket, version, window)
//   anybody: once the update is due, while (claim(bucket, version)) update(piece, step)
//
// The sum over workers and the update are one pass over a piece, so a summed gradient never goes to
// memory. Pieces cut and timed anyhow give the same bits: those of the collectives (models/tensor/
// addition_order.h) followed by one update of the whole arena.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"
#include "models/tensor/sums.h"
#include "ps/sync_rule.h"

namespace syncopate {

// Thread-safe, but for what says otherwise. No call waits for another thread's work; locks are per
// bucket and held for bookkeeping only.
class Shard {
 public:
  // The bucket's values, and how often they have been written: from 1.
  struct Reading {
    std::span<const float> values;
    std::uint64_t version = 0;
  };
  // A part of a due update.
  struct Piece {
    BucketId bucket = 0;
    std::uint64_t version = 0;  // that the update starts from
    Bucket range;               // of the arena
  };

  // Bucket b of this shard is buckets[b]: any part of the arena, in any order, none twice.
  // `values`: [elements of all buckets] f32 on the host, in the order of the arena, holding the
  // first values; the shard reads and writes this memory. Slots begin as zeros. Workers: 1 or more.
  // Throws ShapeError.
  Shard(ArenaLayout layout, std::vector<Bucket> buckets, int workers,
        std::unique_ptr<Optimizer> optimizer, Tensor values);

  int workers() const noexcept { return workers_; }
  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  const Optimizer& optimizer() const noexcept { return *optimizer_; }

  // The values may be read until this bucket's next update is due; a worker reads between the end
  // of one update and its own next push.
  Reading read(BucketId bucket) const;

  // The worker's gradient of the bucket, [bucket] f32, computed from values of `version`. The
  // window stays in use until the version moves on. Returns true to the one push that makes the
  // update due. Throws ShapeError for a wrong length; InternalError for an unknown bucket or
  // worker, a second push of the same version, and another version than the current one.
  bool push(int worker, BucketId bucket, std::uint64_t version, std::span<const float> gradient);

  // Takes the next part, of at most `most_elements`, of the due update that starts from `version`.
  // Nothing when the update is not due, all of it is taken, or it is done: a thread that comes late
  // takes nothing of a later update. Who took a piece must update it.
  std::optional<Piece> claim(BucketId bucket, std::uint64_t version,
                             std::int64_t most_elements = kPieceElements);

  // Sums and updates a claimed piece. All pieces of one update are given the same `step`. Returns
  // true to the one call that ends the bucket's update: version + 1, and what was written is seen
  // by whoever reads that version. Throws InternalError for a piece that is not under way.
  bool update(const Piece& piece, const UpdateStep& step);

  // For checkpoints, alone with the shard: `values` as given to the constructor, slots like it.
  const Tensor& values() const noexcept { return values_; }
  std::span<const Tensor> slots() const noexcept { return slots_; }
  // Values and slots were written from outside: forgets the pushes and raises every version.
  void restart();

  // Long enough to make a claim's lock cheap, short enough to share out a small bucket.
  static constexpr std::int64_t kPieceElements = 16384;

 private:
  struct Variable {
    Variable(BucketId bucket, int workers) : rule(bucket, workers) {}

    std::int64_t position = 0;  // of its first element in values_
    mutable std::mutex mutex;
    // Guarded by mutex; the gradients of a due update may be read by who holds a piece of it.
    SyncRule rule;
    std::int64_t claimed = 0;  // elements of the update that is due
    std::int64_t updated = 0;
  };

  void place_variables();
  // Throws InternalError for a bucket that this shard has not.
  std::size_t index_of(BucketId bucket) const;
  std::int64_t size(BucketId bucket) const;
  void update_chunk(const Variable& variable, Bucket bucket, Bucket chunk, const UpdateStep& step);

  const ArenaLayout layout_;
  const std::vector<Bucket> buckets_;
  const int workers_;
  const std::unique_ptr<Optimizer> optimizer_;
  const SumKernels& sums_;
  Tensor values_;
  std::vector<Tensor> slots_;
  std::deque<Variable> variables_;
};

}  // namespace syncopate
