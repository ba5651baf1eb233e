#include "ps/shard/staleness.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace syncopate::ps {

void StalenessHistogram::add(std::uint64_t staleness) {
  const auto place = static_cast<std::size_t>(std::min(staleness, kLongest));
  if (counts_.size() <= place) counts_.resize(place + 1);
  ++counts_[place];
  ++count_;
  sum_ += static_cast<double>(staleness);
  max_ = std::max(max_, staleness);
}

void StalenessHistogram::merge(const StalenessHistogram& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

double StalenessHistogram::mean() const noexcept {
  return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_);
}

StalenessHistogram StalenessHistogram::of(std::vector<std::int64_t> counts, double sum,
                                          std::uint64_t max) {
  StalenessHistogram histogram;
  histogram.count_ = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  histogram.counts_ = std::move(counts);
  histogram.sum_ = sum;
  histogram.max_ = max;
  return histogram;
}

}  // namespace syncopate::ps
