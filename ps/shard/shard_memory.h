// The tensors of a shard (values and optimizer slots) and all work on their elements: updates,
// copies and snapshots. ps/shard/shard.h decides which work is done, and does the locking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"
#include "models/tensor/sums.h"
#include "ps/shard/shard_requests.h"
#include "ps/shard/shared_bucket.h"

namespace syncopate::ps {

// The values and slots of a shard. Thread-safe for calls on different elements.
class ShardMemory {
 public:
  // `values`: [elements of all buckets] f32, in the order of the arena. Slots begin as zeros.
  // `format` is the format of the values in answers.
  ShardMemory(ArenaLayout layout, std::unique_ptr<Optimizer> optimizer, Tensor values,
              ValuesFormat format);

  const ArenaLayout& layout() const noexcept { return layout_; }
  const Optimizer& optimizer() const noexcept { return *optimizer_; }
  ValuesFormat format() const noexcept { return format_; }
  const Tensor& values() const noexcept { return values_; }
  std::span<const Tensor> slots() const noexcept { return slots_; }

  // The place of a bucket's elements.
  struct Window {
    Bucket range;               // elements in the arena
    std::int64_t position = 0;  // index of the bucket's first element in the tensors
    std::int64_t elements() const noexcept { return range.end - range.begin; }
  };

  // Does the work of a bucket's task, such as an update, on the elements `range` of the arena,
  // which are a part of `window`. One pass, in chunks that fit into the cache, decodes and sums the
  // gradients, then updates and copies the values.
  void run(const BucketTask& task, const Window& window, Bucket range);

  // Checks the tensors of a snapshot. Throws ShapeError unless they have the shapes of the shard's
  // tensors. If `may_lack_slots`, a snapshot without any slots is accepted too.
  void check_tensors(const ShardSnapshot& snapshot, bool may_lack_slots) const;
  // Returns a copy of the shard's tensors; the buckets' versions and clocks are left empty.
  ShardSnapshot copy() const;
  // Replaces the values and slots. The tensors of the snapshot may be the shard's own.
  void restore(const ShardSnapshot& snapshot);
  // Checks the blocks of a write. Throws ShapeError unless there is one block for the values of the
  // window and, after it, either no block or one block for each slot. A block is [elements] f32, of
  // any alignment.
  void check_blocks(BucketId bucket, const Window& window,
                    std::span<const std::span<const std::byte>> blocks) const;
  void write(const Window& window, std::span<const std::span<const std::byte>> blocks);

 private:
  void run_on_chunk(const BucketTask& task, const Window& window, Bucket chunk);
  void update_chunk(const BucketTask& task, const Window& window, Bucket chunk);
  // Copies the values of a chunk to a worker's memory. The chunk begins at element `offset` of its
  // bucket.
  void answer(const Destination& to, std::int64_t offset, std::span<const float> values) const;

  const ArenaLayout layout_;
  const std::unique_ptr<Optimizer> optimizer_;
  const SumKernels& sums_;
  const ValuesFormat format_;
  Tensor values_;
  std::vector<Tensor> slots_;
};

}  // namespace syncopate::ps
