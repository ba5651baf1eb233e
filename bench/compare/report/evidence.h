// What the runs of a comparison show, and how certain it is: which variant was first, which
// variants cannot be told apart. Also the phrases that the sentences of the verdict and its remarks
// share.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/statistics.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

// A quantity of a row, such as &VariantSummary::accuracy.
using Quantity = std::optional<Sample> VariantSummary::*;

// The least number of seeds for a confidence interval; fewer say too little about the spread.
inline constexpr int kEnoughSeeds = 3;

// Returns the difference of a quantity, `a` minus `b`; empty unless both rows have enough seeds.
std::optional<Difference> difference(const VariantSummary& a, const VariantSummary& b,
                                     Quantity quantity);

// The time of row `a` to the target divided by that of row `b`: geometric mean over seeds. Rows
// with the same seeds are compared seed by seed.
struct TimeRatio {
  double value = 1.0;
  // The 95 % interval of the ratio; with fewer than kEnoughSeeds its range over the seeds. It is
  // widened by the distance between evaluations, because the target was reached at some time since
  // the previous evaluation. `high` may be infinite.
  Interval interval;
  int seeds = 1;  // number of seeds of the row with fewer seeds
  bool is_significant() const noexcept { return !interval.contains(1.0); }
  bool has_enough_seeds() const noexcept { return seeds >= kEnoughSeeds; }
  // Whether the interval is finite: no run reached the target before its first evaluation.
  bool is_bounded() const noexcept { return interval.low > 0.0 && std::isfinite(interval.high); }
};
// Returns nothing unless every run of both rows reached the target, after more than 0 seconds.
std::optional<TimeRatio> time_ratio(const VariantSummary& a, const VariantSummary& b);

// Whether all runs of two rows ended with equal weights, bit for bit.
bool have_same_weights(const VariantSummary& a, const VariantSummary& b);
// Whether two rows have the same weights and the same times, also to the target.
bool are_identical(const VariantSummary& a, const VariantSummary& b);

// Returns the row with the smallest mean time to the target; null if no row has one.
const VariantSummary* fastest(const Rows& rows);
// Returns the first row with a result, which others are compared with; null if there is none.
const VariantSummary* reference(const Rows& rows);
// Returns the rows that may be recommended: better than chance, and complete; if no row is
// complete, those with a successful run.
Rows choices(const Rows& rows, const std::optional<Chance>& chance);
// Returns the row with the best final accuracy; null if no row has one.
const VariantSummary* most_accurate(const Rows& rows);

// Returns the rows besides `first` whose `quantity` does not differ significantly from that of
// `first`. Rows with too few seeds are left out.
std::vector<const VariantSummary*> not_told_from(const Rows& rows, const VariantSummary& first,
                                                 Quantity quantity);

// Returns the rows besides `first` whose time to the target, over any number of seeds, does not
// differ significantly from that of `first`. Rows identical to `first` are left out.
std::vector<const VariantSummary*> not_later_than(const Rows& rows, const VariantSummary& first);
std::vector<const VariantSummary*> identical_to(const Rows& rows, const VariantSummary& first);

// The rows with the smallest and the largest batch per update. Both rows are null unless the
// largest is at least 1.5 times the smallest and all rows have about the same learning rate.
struct BatchExtremes {
  const VariantSummary* fewest = nullptr;
  const VariantSummary* most = nullptr;
};
BatchExtremes batches_at_one_rate(const Rows& rows);

// Returns the name of the row, in quotes if it has commas or blanks.
std::string named(const VariantSummary& row);
// Returns text such as "97.21 %" for a row that has an accuracy.
std::string accuracy_of(const VariantSummary& row);
// Returns a row's time to the target as text: "0.284 s" or "0.284 virtual s".
std::string time_of(const VariantSummary& row, const Comparison& comparison);

// Describes the uncertainty of a factor: "95 % interval 1.9x to 2.4x", with few seeds "1.9x to 2.4x
// with the two seeds".
std::string interval_words(const TimeRatio& ratio);
// Describes the uncertainty of a difference of accuracies, in points: "95 % interval 1.17 to 1.63".
std::string interval_words(const Difference& difference);

}  // namespace syncopate::bench
