#include "ps/shard/staleness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "models/base/denormals.h"

namespace syncopate::ps {
namespace {

// Delay compensation divides lambda by the root of (mean square + epsilon). Source: the code of the
// authors, Zheng et al. 2017.
constexpr float kCompensationEpsilon = 1e-7F;

}  // namespace

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

std::span<const float> compensate(const DelayCompensation& compensation,
                                  std::span<const float> gradient, std::span<const float> values,
                                  std::span<float> result) {
  const FlushDenormals flush;
  const std::size_t n = gradient.size();
  const std::span<float> square = compensation.mean_square;
  const std::span<const float> read = compensation.read;
  const float decay = compensation.mean_square_decay;
  if (!square.empty()) {
    for (std::size_t i = 0; i < n; ++i) {
      square[i] = decay * square[i] + (1.0F - decay) * gradient[i] * gradient[i];
    }
  }
  if (read.empty()) return gradient;
  const float lambda = compensation.lambda;
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    const float scale =
        square.empty() ? lambda : lambda / std::sqrt(square[i] + kCompensationEpsilon);
    result[i] = g + scale * g * g * (values[i] - read[i]);
  }
  return result;
}

}  // namespace syncopate::ps
