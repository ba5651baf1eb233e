// Computes which samples of the global order each batch holds, without threads or sample memory.
// The global batch of a step is divided into equal shares, one per replica; a plan has the shares
// of one task. Used by BatchReader and the training loops.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "worker/input/batches/batch_source.h"

namespace syncopate {

// The samples of one epoch that were skipped and still have to be trained, as ranges of the epoch's
// order. The skipped samples are numbered from 0 across all ranges. Immutable, thread-safe.
class UntrainedSamples {
 public:
  UntrainedSamples() = default;
  // ranges: the skipped ranges of one epoch, ascending, not empty, not overlapping.
  explicit UntrainedSamples(std::vector<ps::SampleRange> ranges);

  std::int64_t count() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  // Counts only the skipped samples: returns the range of the epoch's order that begins with
  // skipped sample number `i` and ends where the skipped range with this sample ends. i in [0,
  // count()).
  ps::SampleRange range_at(std::int64_t i) const;
  // Returns the ranges without the first `i` skipped samples. i in [0, count()].
  std::vector<ps::SampleRange> without_first(std::int64_t i) const;

 private:
  // Index of the range that contains skipped sample i; ranges_.size() if i == count().
  std::size_t range_of(std::int64_t i) const;

  std::vector<ps::SampleRange> ranges_;
  std::vector<std::int64_t> ends_;  // number of skipped samples up to the end of each range
};

// A batch of one epoch. Samples have numbers: usually the number of a sample is its index in the
// epoch's order. An epoch that was begun before the plan started may have skipped samples, which
// are still to be trained. Let `end` be the index of the first sample that earlier steps did not
// reach, or the size of the data set if they reached all samples. The k skipped samples then have
// the numbers from end - k to end - 1. BatchPlan::range_at() converts numbers to indices.
struct PlannedBatch {
  ps::DataPosition position;  // where the global batch starts
  std::int64_t epoch = 0;     // epoch of the samples; for skipped samples lower than position.epoch
  // The samples of this task's share of the global batch are numbered from `begin` to `end` - 1.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t global_count = 0;  // number of samples of the global batch
};

// Computes which samples of each global batch one task trains on. Immutable, thread-safe.
class BatchPlan {
 public:
  // Makes a plan. Throws UsageError for options and positions that make_batch_source() refuses.
  BatchPlan(std::int64_t dataset_size, const InputOptions& options, ps::DataPosition start);

  // Returns batch number `sequence`, counted from 0 at the start position. There is no last batch,
  // because after each epoch the next epoch begins. This task's share of the batch follows from
  // strategies/input_shard.h. Allocates memory only while skipped ranges are left.
  PlannedBatch batch(std::int64_t sequence) const;
  // Returns the samples of a batch that begin with number `i` and have consecutive indices in the
  // epoch's order, as a range of this order. The range ends at the first gap or at the end of the
  // batch. i in [planned.begin, planned.end).
  ps::SampleRange range_at(const PlannedBatch& planned, std::int64_t i) const;

  // Returns the number of batches from the start position to the end of epoch `epoch` - 1.
  std::int64_t batches_before(std::int64_t epoch) const noexcept;
  std::int64_t batches_per_epoch() const noexcept { return batches_in(dataset_size_); }
  // Returns the most samples that the share of this task can have. In a short batch the share of
  // one of the last replicas may be larger than in a whole batch: the last of 4 replicas gets 1 of
  // 10 samples, but 2 of 8 samples.
  std::int64_t most_samples() const noexcept;

 private:
  // The samples that are left of an epoch that was begun: its skipped ranges, then all samples from
  // `offset` on. The skipped samples have the numbers directly below `offset`.
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
  // Returns the batch that starts at the sample with number `begin` of an epoch, see PlannedBatch.
  PlannedBatch cut(std::int64_t epoch, std::int64_t begin, ps::DataPosition position) const;
  // Returns the data position of the batch that starts at the sample with number `begin` of the
  // epoch `rest`, see PlannedBatch.
  ps::DataPosition position_in(std::vector<Rest>::const_iterator rest, std::int64_t begin) const;

  std::int64_t dataset_size_;
  std::int64_t global_batch_;
  bool drop_remainder_;
  InputShard shard_;
  std::vector<Rest> rests_;  // the unfinished epochs, ascending; all later epochs are whole
};

}  // namespace syncopate
