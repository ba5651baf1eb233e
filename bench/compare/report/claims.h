// Which differences between the rows of a comparison are certain. Every pair of rows is compared in
// final accuracy and in time to the target, all of them in one family: the probability that a
// report of identical variants claims any difference is at most kFamilyLevel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/statistics.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

inline constexpr double kFamilyLevel = 0.05;
// The least number of seeds for a claim about accuracy and for one about time.
inline constexpr int kSeedsForAccuracy = 3;
inline constexpr int kSeedsForTime = 5;
// Two rows count as equal if the interval of their difference lies within these margins: 0.5 points
// of accuracy, and a factor of 1.1 in time.
inline constexpr double kEqualAccuracy = 0.005;
inline constexpr double kEqualTime = 1.1;

enum class Measure : std::uint8_t { kAccuracy, kTime };

// The difference between two rows: accuracy of `a` minus that of `b`, as a fraction; or the
// logarithm of the time to the target of `a` divided by that of `b`.
struct PairDifference {
  std::size_t a = 0;  // indices of rows
  std::size_t b = 0;
  Measure measure = Measure::kAccuracy;
  double value = 0.0;
  // The interval at `level`, at which Holm's procedure tested the pair. In an interval of times
  // the distance between evaluations is a source of error: a run reached the target at some time
  // since its previous evaluation, any of them equally likely. It cancels between
  // rows with equal weights. Otherwise the interval is infinite if the target was reached at the
  // first evaluation.
  Interval interval;
  double level = kFamilyLevel;
  double adjusted_p = 1.0;
  // The same if the distance between evaluations were no source of error: larger for some pairs,
  // because a source of known size adds degrees of freedom.
  double welch_adjusted_p = 1.0;
  // The difference that the seeds would have shown with a probability of about 80 %.
  double detectable = 0.0;
  // The part of the variance of `value` that the distance between evaluations adds, from 0 to 1. It
  // does not become smaller with more seeds.
  double evaluation_share = 0.0;
  int seeds = 0;  // number of seeds of the row with fewer seeds

  bool is_claimed() const noexcept { return adjusted_p <= kFamilyLevel; }
  // Whether the interval lies within the margin of equality.
  bool is_equal() const noexcept;
};

// The comparisons of all pairs of rows. A pair is left out in accuracy if a row has fewer than
// kSeedsForAccuracy seeds or a failed run, and in time if a row has fewer than kSeedsForTime or a
// run that missed the target; in both if other programs disturbed a run of either row.
class Claims {
 public:
  explicit Claims(const Rows& rows);

  // Returns the difference of row `a` from row `b`; empty if the pair was left out.
  std::optional<PairDifference> difference(std::size_t a, std::size_t b, Measure measure) const;
  // Whether it is claimed that row `a` reached the target sooner than row `b`.
  bool is_sooner(std::size_t a, std::size_t b) const;
  // Whether it is claimed that row `a` ended more accurate than row `b`.
  bool is_more_accurate(std::size_t a, std::size_t b) const;

  const std::vector<PairDifference>& all() const noexcept { return pairs_; }

 private:
  std::vector<PairDifference> pairs_;  // a < b
  std::vector<std::size_t> twins_;     // for each row the first row with equal weights
};

// Whether all runs of two rows ended with equal weights, bit for bit.
bool have_same_weights(const VariantSummary& a, const VariantSummary& b);

// Whether a claim about the row's final accuracy, or about its time to the target, is possible.
bool has_claimable_accuracy(const VariantSummary& row);
bool has_claimable_time(const VariantSummary& row);

// Returns what stands after a difference: " (geometric means, 1.9x to 2.4x)" or " (1.17 to 1.63)",
// without an infinite interval.
std::string in_parentheses(const PairDifference& difference);
// Returns the interval in words, "1.9x to 2.4x" or, for accuracies, "1.17 to 1.63" in points; "" if
// it is infinite.
std::string interval_words(const PairDifference& difference);

}  // namespace syncopate::bench
