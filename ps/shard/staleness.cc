#include "ps/shard/staleness.h"

#include <algorithm>
#include <bit>
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

constexpr std::size_t kExact = 64;  // less is counted exactly
constexpr std::size_t kRangesPerPower = 16;
constexpr std::uint64_t kLongest = 0xffffffffU;  // counted together with all that is longer

std::size_t range_of(std::uint64_t staleness) {
  if (staleness < kExact) return static_cast<std::size_t>(staleness);
  // The staleness has 1 + `power` + 6 binary digits; the first of them is 1, and the next four
  // number the range.
  const int power = std::bit_width(staleness) - std::bit_width(kExact);
  const auto part = static_cast<std::size_t>(staleness >> (power + 2)) % kRangesPerPower;
  return kExact + static_cast<std::size_t>(power) * kRangesPerPower + part;
}

}  // namespace

void StalenessTotals::add(std::uint64_t staleness) {
  ++count;
  sum += static_cast<double>(staleness);
  max = std::max(max, staleness);
}

double StalenessTotals::mean() const noexcept {
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

std::uint64_t StalenessHistogram::least_of(std::size_t range) {
  if (range < kExact) return range;
  const std::size_t power = (range - kExact) / kRangesPerPower;
  const std::size_t part = (range - kExact) % kRangesPerPower;
  return (kRangesPerPower + part) * (kExact / kRangesPerPower) << power;
}

void StalenessHistogram::add(std::uint64_t staleness) {
  const std::size_t range = range_of(std::min(staleness, kLongest));
  if (counts_.size() <= range) counts_.resize(range + 1);
  ++counts_[range];
  totals_.add(staleness);
}

void StalenessHistogram::merge(const StalenessHistogram& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  totals_.count += other.totals_.count;
  totals_.sum += other.totals_.sum;
  totals_.max = std::max(totals_.max, other.totals_.max);
}

StalenessHistogram StalenessHistogram::of(std::vector<std::int64_t> counts, double sum,
                                          std::uint64_t max) {
  StalenessHistogram histogram;
  histogram.totals_ = {.count = std::accumulate(counts.begin(), counts.end(), std::int64_t{0}),
                       .sum = sum,
                       .max = max};
  histogram.counts_ = std::move(counts);
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
