// The staleness of a gradient is the version of its bucket when the gradient was applied minus the
// version that the worker read: SharedBucket::staleness_of() in shared_bucket.cc. This file has the
// histogram of staleness and the formula that compensates a gradient for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate::ps {

// The sum of many stalenesses.
struct StalenessTotals {
  std::int64_t count = 0;
  double sum = 0.0;
  std::uint64_t max = 0;

  void add(std::uint64_t staleness);
  double mean() const noexcept;  // 0 without pushes
};

// Counts the staleness of applied gradients: exactly below 64, then in 16 ranges of equal width
// from each power of two to the next, which is at most kMostRanges counts. Used by one thread at a
// time.
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
  static constexpr std::size_t kMostRanges = 480;  // the last one ends with 32 bits

  // Rebuilds a staleness histogram from its fields in a message or a file.
  static StalenessHistogram of(std::vector<std::int64_t> counts, double sum, std::uint64_t max);

 private:
  std::vector<std::int64_t> counts_;
  StalenessTotals totals_;
};

// Delay compensation corrects a gradient for the updates since its values were read. The
// correction works element by element, so that any division of a bucket into pieces gives the same
// bits. Source: Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay
// compensation", eq. 10 and 14.
struct DelayCompensation {
  float lambda = 0.04F;
  float mean_square_decay = 0.95F;
  // [bucket] f32: the values that the worker read. Empty when the values have not changed since or
  // are unknown; the gradient is then not corrected.
  std::span<const float> read;
  // [bucket] f32, moving average of the squared gradients. Empty: lambda is not adaptive.
  std::span<float> mean_square;

  bool is_needed() const noexcept { return !read.empty() || !mean_square.empty(); }
};

// Includes the gradient g in the mean square, then computes g + lambda g g (w - w_read); adaptive:
// with lambda / sqrt(mean square + 1e-7). The spans of `compensation`, `gradient` and `values` [n]
// are windows on the same elements; `result` [n] may be the gradient. Returns `result`, or the
// gradient when `read` is empty. Any thread, on elements that no other thread uses.
std::span<const float> compensate(const DelayCompensation& compensation,
                                  std::span<const float> gradient, std::span<const float> values,
                                  std::span<float> result);

}  // namespace syncopate::ps
