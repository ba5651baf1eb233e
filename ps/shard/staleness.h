// How stale the gradients were that an update used: server version at apply minus version read,
// counted exactly up to a bound.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::ps {

// One thread at a time.
class StalenessHistogram {
 public:
  void add(std::uint64_t staleness);
  void merge(const StalenessHistogram& other);

  std::int64_t count() const noexcept { return count_; }
  double mean() const noexcept;  // 0 of nothing
  std::uint64_t max() const noexcept { return max_; }
  // counts()[s]: pushes of staleness s, and in the last place those of kLongest or more; as long as
  // it needs to be.
  const std::vector<std::int64_t>& counts() const noexcept { return counts_; }

  // As it travels and as it is saved.
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
