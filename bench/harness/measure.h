// What a benchmark may say about repeated measurements: the median, how far they lie apart, and the
// ratio of two sides that were measured in turn.
#pragma once

#include <span>
#include <vector>

namespace syncopate::bench {

// The middle value; the mean of the two middle ones for an even count. Throws InternalError when
// empty.
double median(std::span<const double> values);

// The smallest value that at least `share` of all values do not exceed: 0.99 for the 99th
// percentile. Throws InternalError when empty.
double percentile(std::span<const double> values, double share);

struct Spread {
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
};
// Throws InternalError when empty.
Spread spread_of(std::span<const double> values);

// Of the ratios numerator[i] / denominator[i], round by round: what moves both sides of a round
// cancels. Throws InternalError when the counts differ or are zero.
Spread ratio_of(std::span<const double> numerator, std::span<const double> denominator);

// A round in which others used more than this share of one core is no measurement.
inline constexpr double kForeignLimit = 0.12;

// The rounds to judge by: those within the limit, or all of them when fewer than three are.
// foreign[i]: share of one core that others used in round i.
std::vector<std::size_t> quiet_rounds(std::span<const double> foreign);

// Every round that quiet_rounds gives is within the limit: the numbers may be quoted.
bool is_quiet(std::span<const double> foreign);

// values[rounds[0]], values[rounds[1]], ...
std::vector<double> select(std::span<const double> values, std::span<const std::size_t> rounds);

}  // namespace syncopate::bench
