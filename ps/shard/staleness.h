// The staleness of a gradient is the version of its bucket when the gradient was applied minus the
// version that the worker read. SharedBucket::staleness_of() in shared_bucket.cc computes the
// staleness. This file has the histogram of staleness and the formula that compensates a gradient
// for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate::ps {

// The number, the sum and the largest of many staleness values.
struct StalenessTotals {
  std::int64_t count = 0;
  double sum = 0.0;
  std::uint64_t max = 0;

  void add(std::uint64_t staleness);
  double mean() const noexcept;  // 0 without pushes
};

// A histogram of the staleness of applied gradients. Values below 64 are counted exactly. From 64
// on, there are 16 ranges of equal width between each power of two and the next. The histogram has
// at most kMostRanges counts. Used by one thread at a time.
class StalenessHistogram {
 public:
  void add(std::uint64_t staleness);
  void merge(const StalenessHistogram& other);

  std::int64_t count() const noexcept { return totals_.count; }
  double mean() const noexcept { return totals_.mean(); }
  std::uint64_t max() const noexcept { return totals_.max; }
  double sum() const noexcept { return totals_.sum; }
  // counts()[i] is the number of pushes with staleness least_of(i) to least_of(i + 1) - 1. The
  // vector ends with the range of the largest staleness seen.
  const std::vector<std::int64_t>& counts() const noexcept { return counts_; }
  static std::uint64_t least_of(std::size_t range);
  // The last range ends at 2^32 - 1, and also counts all larger values.
  static constexpr std::size_t kMostRanges = 480;

  // Rebuilds a staleness histogram from its fields in a message or a file.
  static StalenessHistogram of(std::vector<std::int64_t> counts, double sum, std::uint64_t max);

 private:
  std::vector<std::int64_t> counts_;
  StalenessTotals totals_;
};

// Delay compensation corrects a gradient for the updates since the worker read the values. The
// correction works element by element, so the bits of the result do not depend on how a bucket is
// divided into pieces. Source: Zheng et al. 2017, "Asynchronous stochastic gradient descent with
// delay compensation", eq. 10 and 14.
struct DelayCompensation {
  float lambda = 0.04F;
  float mean_square_decay = 0.95F;
  // [bucket] f32: the values that the worker read. Empty if the values have not changed since or
  // are not known; the gradient is then not corrected.
  std::span<const float> read;
  // [bucket] f32, moving average of the squared gradients. Empty unless lambda is adaptive.
  std::span<float> mean_square;

  bool is_needed() const noexcept { return !read.empty() || !mean_square.empty(); }
};

// Updates the mean square, if there is one, with the gradient g, then computes g + lambda g g (w -
// w_read). If lambda is adaptive, lambda / sqrt(mean square + 1e-7) replaces lambda. `gradient`,
// `values` and the spans of `compensation` are [n] f32 for the same n elements of a bucket;
// `result` [n] may be the memory of `gradient`. Returns `result`, or `gradient` if `read` is empty.
// Thread-safe for different elements.
std::span<const float> compensate(const DelayCompensation& compensation,
                                  std::span<const float> gradient, std::span<const float> values,
                                  std::span<float> result);

}  // namespace syncopate::ps
