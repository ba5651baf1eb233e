// Histogram of the staleness of applied gradients: the version when a gradient was applied minus
// the version that its worker read. The counts are exact up to a bound.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::ps {

// A StalenessHistogram is used by one thread at a time.
class StalenessHistogram {
 public:
  void add(std::uint64_t staleness);
  void merge(const StalenessHistogram& other);

  std::int64_t count() const noexcept { return count_; }
  double mean() const noexcept;  // 0 for an empty histogram
  std::uint64_t max() const noexcept { return max_; }
  // counts()[s] is the number of pushes with staleness s; counts()[kLongest] includes larger ones.
  // The vector ends with the largest staleness seen.
  const std::vector<std::int64_t>& counts() const noexcept { return counts_; }

  // Rebuilds a staleness histogram from its fields in a message or a file.
  static StalenessHistogram of(std::vector<std::int64_t> counts, double sum, std::uint64_t max);
  double sum() const noexcept { return sum_; }

  static constexpr std::uint64_t kLongest = 1023;

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  double sum_ = 0.0;
  std::uint64_t max_ = 0;
};

}  // namespace syncopate::ps
