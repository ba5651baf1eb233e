// Which samples of the global order each batch holds: arithmetic only, no threads, no memory. A
// step's global batch is cut into equal shares, one per replica; this plan answers for those of one
// task.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "worker/input/batch_source.h"

namespace syncopate {

// Samples of one epoch that were passed over and are still to be trained: ranges of its order, laid
// end to end in one row. For BatchPlan.

// Immutable, thread-safe.
class UntrainedSamples {
 public:
  UntrainedSamples() = default;
  // Of one epoch, in ascending order; none is empty, none overlaps another.
  explicit UntrainedSamples(std::vector<ps::SampleRange> ranges);

  std::int64_t count() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  // From sample `i` of the row on, as far as it is one range of the epoch's order. i in [0, count).
  ps::SampleRange range_at(std::int64_t i) const;
  // The ranges without the row's first `i` samples, i in [0, count].
  std::vector<ps::SampleRange> without_first(std::int64_t i) const;

 private:
  std::size_t range_of(std::int64_t i) const;  // ranges_.size() for i = count

  std::vector<ps::SampleRange> ranges_;
  std::vector<std::int64_t> ends_;  // of each range in the row
};

// A batch is of one epoch. Its samples are counted in that epoch's row: what was trained before the
// plan's start, then the rest in the epoch's order. Without gaps the row is the order.
struct PlannedBatch {
  ps::DataPosition position;      // where the global batch starts
  std::int64_t epoch = 0;         // position.epoch, or that of a range passed over
  std::int64_t begin = 0;         // this shard's samples: [begin, end) of the epoch's row
  std::int64_t end = 0;           //
  std::int64_t global_count = 0;  // samples of the step over all shards
};

// Immutable, thread-safe.
class BatchPlan {
 public:
  // Throws UsageError for what make_batch_source refuses.
  BatchPlan(std::int64_t dataset_size, const InputOptions& options, ps::DataPosition start);

  // Batch `sequence` (from 0) counted from the start position, across epochs without end.
  // Cut as strategies/input_shard.h says. Allocates only while untrained ranges are left.
  PlannedBatch batch(std::int64_t sequence) const;
  // Where in the epoch's order the planned batch's samples from `i` on stand, as far as they stand
  // there side by side. i in [planned.begin, planned.end).
  ps::SampleRange range_at(const PlannedBatch& planned, std::int64_t i) const;

  // From the start position to the end of all epochs below `epoch`.
  std::int64_t batches_before(std::int64_t epoch) const noexcept;
  std::int64_t batches_per_epoch() const noexcept { return batches_in(dataset_size_); }
  // That this task's part of any batch can have. A short batch may give a late replica more than a
  // whole one does: of 10 samples the last of 4 replicas gets 1, of 8 it gets 2.
  std::int64_t most_samples() const noexcept;

 private:
  // An epoch that was begun: its untrained ranges stand in its row right before `offset`, then the
  // order itself goes on.
  struct Rest {
    std::int64_t epoch = 0;
    std::int64_t offset = 0;  // the dataset's size where only gaps are left
    UntrainedSamples untrained;
    std::int64_t begin() const noexcept { return offset - untrained.count(); }
  };

  static std::vector<Rest> rests_of(const ps::DataPosition& start, std::int64_t dataset_size);
  // Of a global batch of so many, counted from its beginning.
  BatchShare share_of(std::int64_t samples) const noexcept;
  std::int64_t batches_in(std::int64_t samples) const noexcept;
  std::int64_t batches_in(const Rest& rest) const noexcept;
  // The batch that starts at sample `begin` of an epoch's row.
  PlannedBatch cut(std::int64_t epoch, std::int64_t begin, ps::DataPosition position) const;
  // Where a batch starts that begins at sample `begin` of this rest's row.
  ps::DataPosition position_in(std::vector<Rest>::const_iterator rest, std::int64_t begin) const;

  std::int64_t dataset_size_;
  std::int64_t global_batch_;
  bool drop_remainder_;
  InputShard shard_;
  std::vector<Rest> rests_;  // of ascending epochs; the last is where the order goes on
};

}  // namespace syncopate
