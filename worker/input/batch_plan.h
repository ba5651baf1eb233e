// Which samples of the global order each batch holds: arithmetic only, no threads, no memory. A
// step's global batch is cut into equal shares, one per replica; this plan answers for those of one
// task.
#pragma once

#include <cstdint>

#include "worker/input/batch_source.h"

namespace syncopate {

struct PlannedBatch {
  DataPosition position;          // where the global batch starts
  std::int64_t begin = 0;         // this shard's samples: [begin, end) of the epoch's order
  std::int64_t end = 0;           //
  std::int64_t global_count = 0;  // samples of the step over all shards
};

// Immutable, thread-safe.
class BatchPlan {
 public:
  // Throws UsageError for what make_batch_source refuses.
  BatchPlan(std::int64_t dataset_size, const InputOptions& options, DataPosition start);

  // Batch `sequence` (from 0) counted from the start position, across epochs without end.
  // Cut as strategies/input_shard.h says.
  PlannedBatch batch(std::int64_t sequence) const;

  std::int64_t batches_per_epoch() const noexcept { return batches_in(dataset_size_); }
  // That this task's part of any batch can have. A short batch may give a late replica more than a
  // whole one does: of 10 samples the last of 4 replicas gets 1, of 8 it gets 2.
  std::int64_t most_samples() const noexcept;

 private:
  // Of a global batch of so many, counted from its beginning.
  SampleRange share_of(std::int64_t samples) const noexcept;
  std::int64_t batches_in(std::int64_t samples) const noexcept;

  std::int64_t dataset_size_;
  std::int64_t global_batch_;
  bool drop_remainder_;
  InputShard shard_;
  DataPosition start_;
  std::int64_t batches_in_first_epoch_;
};

}  // namespace syncopate
