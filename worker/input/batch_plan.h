// Computes which samples of the global order each batch holds, without threads or sample memory.
// The global batch of a step is cut into equal shares, one per replica; a plan gives the shares of
// one task. Used by BatchReader and the train loops.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "worker/input/batch_source.h"

namespace syncopate {

// The samples of one epoch that were skipped and still have to be trained: ranges of the epoch's
// order, one after the other in a row. Immutable, thread-safe.

// The skipped ranges of one epoch, joined to a row. Immutable, thread-safe.
class UntrainedSamples {
 public:
  UntrainedSamples() = default;
  // ranges: the skipped ranges of one epoch, ascending, not empty, not overlapping.
  explicit UntrainedSamples(std::vector<ps::SampleRange> ranges);

  std::int64_t count() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  // Returns the range of the epoch's order that begins at sample `i` of the row. i in [0, count).
  ps::SampleRange range_at(std::int64_t i) const;
  // Returns the ranges without the first `i` samples of the row. i in [0, count].
  std::vector<ps::SampleRange> without_first(std::int64_t i) const;

 private:
  std::size_t range_of(std::int64_t i) const;  // ranges_.size() for i = count

  std::vector<ps::SampleRange> ranges_;
  std::vector<std::int64_t> ends_;  // where each range ends in the row
};

// A batch of one epoch. Its samples are numbers in the row of that epoch: the samples trained
// before the start of the plan, then the rest in the epoch's order. Without skipped samples the row
// is the order.
struct PlannedBatch {
  ps::DataPosition position;      // where the global batch starts
  std::int64_t epoch = 0;         // epoch of the samples; below position.epoch if skipped
  std::int64_t begin = 0;         // the samples of this shard are [begin, end) of the row
  std::int64_t end = 0;           //
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
  // Returns the range of the epoch's order that holds the samples from `i` on, up to the first gap.
  // i in [planned.begin, planned.end).
  ps::SampleRange range_at(const PlannedBatch& planned, std::int64_t i) const;

  // Returns the number of batches from the start position to the end of all epochs below `epoch`.
  std::int64_t batches_before(std::int64_t epoch) const noexcept;
  std::int64_t batches_per_epoch() const noexcept { return batches_in(dataset_size_); }
  // Returns the most samples that the share of this task can have. A short batch may give a late
  // replica more than a whole batch does: of 10 samples the last of 4 replicas gets 1, of 8 samples
  // it gets 2.
  std::int64_t most_samples() const noexcept;

 private:
  // What is left of a begun epoch: its row has the skipped ranges right before `offset`, and the
  // order continues there.
  struct Rest {
    std::int64_t epoch = 0;
    std::int64_t offset = 0;  // the data set's size when only skipped ranges are left
    UntrainedSamples untrained;
    std::int64_t begin() const noexcept { return offset - untrained.count(); }
  };

  static std::vector<Rest> rests_of(const ps::DataPosition& start, std::int64_t dataset_size);
  // Returns the share of this task in a global batch of `samples` samples.
  BatchShare share_of(std::int64_t samples) const noexcept;
  std::int64_t batches_in(std::int64_t samples) const noexcept;
  std::int64_t batches_in(const Rest& rest) const noexcept;
  // Returns the batch that starts at sample `begin` of the row of an epoch.
  PlannedBatch cut(std::int64_t epoch, std::int64_t begin, ps::DataPosition position) const;
  // Returns the position of the batch that begins at sample `begin` of the row of `rest`.
  ps::DataPosition position_in(std::vector<Rest>::const_iterator rest, std::int64_t begin) const;

  std::int64_t dataset_size_;
  std::int64_t global_batch_;
  bool drop_remainder_;
  InputShard shard_;
  std::vector<Rest> rests_;  // begun epochs, ascending; the last one has all later samples
};

}  // namespace syncopate
