// Computes which samples of the global order each batch holds, without threads or sample memory.
// The global batch of a step is cut into equal shares, one per replica; a plan gives the shares of
// one task. Used by BatchReader and the train loops.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "worker/input/batches/batch_source.h"

namespace syncopate {

// The samples of one epoch that were skipped and still have to be trained: ranges of the epoch's
// order. Skipped samples are counted from 0 through all ranges. Immutable, thread-safe.
class UntrainedSamples {
 public:
  UntrainedSamples() = default;
  // ranges: the skipped ranges of one epoch, ascending, not empty, not overlapping.
  explicit UntrainedSamples(std::vector<ps::SampleRange> ranges);

  std::int64_t count() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  // Returns the skipped samples from number `i` to the end of the range that holds sample `i`, as a
  // range of the epoch's order. i in [0, count).
  ps::SampleRange range_at(std::int64_t i) const;
  // Returns the ranges without the first `i` skipped samples. i in [0, count].
  std::vector<ps::SampleRange> without_first(std::int64_t i) const;

 private:
  std::size_t range_of(std::int64_t i) const;  // range that holds sample i; ranges_.size() if none

  std::vector<ps::SampleRange> ranges_;
  std::vector<std::int64_t> ends_;  // number of skipped samples up to the end of each range
};

// A batch of one epoch. A plan numbers the samples of an epoch by their index in the epoch's order.
// In an epoch that was begun before the plan started, the skipped samples have the numbers just
// below the first sample that was not begun; BatchPlan::range_at() finds their indices.
struct PlannedBatch {
  ps::DataPosition position;  // where the global batch starts
  std::int64_t epoch = 0;     // epoch of the samples; before position.epoch for skipped samples
  // The task's share has the samples numbered from `begin` up to, but not including, `end`.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t global_count = 0;  // samples of the step over all shards
};

// Computes the batches of one task's share. Immutable, thread-safe.
class BatchPlan {
 public:
  // Makes a plan. Throws UsageError for options and positions that make_batch_source refuses.
  BatchPlan(std::int64_t dataset_size, const InputOptions& options, ps::DataPosition start);

  // Returns batch `sequence` (from 0) after the start position; the epochs have no end. The share
  // is cut as strategies/input_shard.h says. Allocates only while skipped ranges are left.
  PlannedBatch batch(std::int64_t sequence) const;
  // Returns the samples of a batch from `i` up to the first gap or the end of the batch, as a range
  // of the epoch's order. i in [planned.begin, planned.end).
  ps::SampleRange range_at(const PlannedBatch& planned, std::int64_t i) const;

  // Returns the number of batches from the start position to the end of all epochs below `epoch`.
  std::int64_t batches_before(std::int64_t epoch) const noexcept;
  std::int64_t batches_per_epoch() const noexcept { return batches_in(dataset_size_); }
  // Returns the most samples that the share of this task can have. A short batch may give a late
  // replica more than a whole batch does: of 10 samples the last of 4 replicas gets 1, of 8 samples
  // it gets 2.
  std::int64_t most_samples() const noexcept;

 private:
  // The samples that are left of a begun epoch: its skipped ranges, then all samples from `offset`
  // on. The skipped samples have the numbers right before `offset`.
  struct Rest {
    std::int64_t epoch = 0;
    std::int64_t offset = 0;  // the data set's size if only skipped ranges are left
    UntrainedSamples untrained;
    std::int64_t begin() const noexcept { return offset - untrained.count(); }
  };

  static std::vector<Rest> rests_of(const ps::DataPosition& start, std::int64_t dataset_size);
  // Returns the share of this task in a global batch of `samples` samples.
  BatchShare share_of(std::int64_t samples) const noexcept;
  std::int64_t batches_in(std::int64_t samples) const noexcept;
  std::int64_t batches_in(const Rest& rest) const noexcept;
  // Returns the batch that starts at sample `begin` of an epoch, counted as in PlannedBatch.
  PlannedBatch cut(std::int64_t epoch, std::int64_t begin, ps::DataPosition position) const;
  // Returns the data position of the batch that starts at sample `begin` of the epoch `rest`,
  // counted as in PlannedBatch.
  ps::DataPosition position_in(std::vector<Rest>::const_iterator rest, std::int64_t begin) const;

  std::int64_t dataset_size_;
  std::int64_t global_batch_;
  bool drop_remainder_;
  InputShard shard_;
  std::vector<Rest> rests_;  // unfinished epochs, ascending; the last one has all later samples
};

}  // namespace syncopate
