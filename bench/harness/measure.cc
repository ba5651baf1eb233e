#include "bench/harness/measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kFewestQuietRounds = 3;

}  // namespace

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double median(std::span<const double> values) {
  check(!values.empty(), "the median of no values");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double percentile(std::span<const double> values, double share) {
  check(!values.empty() && share > 0.0 && share <= 1.0, "a percentile of some values");
  std::vector<double> sorted(values.begin(), values.end());
  const auto rank =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(rank),
                   sorted.end());
  return sorted[rank];
}

Spread spread_of(std::span<const double> values) {
  const double middle = median(values);
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  return {middle, *lowest, *highest};
}

Spread ratio_of(std::span<const double> numerator, std::span<const double> denominator) {
  check(numerator.size() == denominator.size(), "a ratio needs both sides of every round");
  std::vector<double> ratios(numerator.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] = numerator[i] / denominator[i];
  return spread_of(ratios);
}

std::vector<std::size_t> quiet_rounds(std::span<const double> foreign) {
  std::vector<std::size_t> quiet;
  for (std::size_t i = 0; i < foreign.size(); ++i) {
    if (foreign[i] <= kForeignLimit) quiet.push_back(i);
  }
  if (quiet.size() < kFewestQuietRounds) {
    quiet.resize(foreign.size());
    std::iota(quiet.begin(), quiet.end(), std::size_t{0});
  }
  return quiet;
}

bool is_quiet(std::span<const double> foreign) {
  const std::vector<double> counted = select(foreign, quiet_rounds(foreign));
  return std::all_of(counted.begin(), counted.end(),
                     [](double share) { return share <= kForeignLimit; });
}

std::vector<double> select(std::span<const double> values, std::span<const std::size_t> rounds) {
  std::vector<double> result;
  result.reserve(rounds.size());
  for (const std::size_t round : rounds) result.push_back(values[round]);
  return result;
}

}  // namespace syncopate::bench
