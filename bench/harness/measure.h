// Measures time, and computes statistics of repeated measurements: median, range, and the ratio of
// two sides that were measured in turns.
#pragma once

#include <chrono>
#include <span>
#include <vector>

namespace syncopate::bench {

using SteadyClock = std::chrono::steady_clock;
double seconds_since(SteadyClock::time_point start);

// Returns the middle value, or the mean of the two middle values for an even count. Throws
// InternalError when `values` is empty.
double median(std::span<const double> values);

// Returns the smallest of the values such that at least `share` of all values are not above it.
// 0.99 gives the 99th percentile. Throws InternalError when `values` is empty.
double percentile(std::span<const double> values, double share);

struct Spread {
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
};
// Returns median, minimum and maximum of the values. Throws InternalError when `values` is empty.
Spread spread_of(std::span<const double> values);

// Returns the spread of the ratios numerator[i] / denominator[i], where i is the round. A
// disturbance that slows both sides of a round cancels out. Throws InternalError when the counts
// differ or are zero.
Spread ratio_of(std::span<const double> numerator, std::span<const double> denominator);

// A round is disturbed when foreign processes used more than this share of one core.
inline constexpr double kForeignLimit = 0.12;

// Returns the indices of the undisturbed rounds, or of all rounds when fewer than three are
// undisturbed. foreign[i] is the share of one core that foreign processes used in round i.
std::vector<std::size_t> quiet_rounds(std::span<const double> foreign);

// Returns whether all rounds that quiet_rounds() returns are undisturbed. Only then are the numbers
// good enough to publish.
bool is_quiet(std::span<const double> foreign);

// Returns the values of the given rounds, in the order of `rounds`.
std::vector<double> select(std::span<const double> values, std::span<const std::size_t> rounds);

}  // namespace syncopate::bench
