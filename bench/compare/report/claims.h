// Decides which differences between the rows (variants) of a comparison are certain. Every pair of
// rows is compared by final accuracy and by time to the target. If all variants are identical, the
// probability that a report claims any difference is at most kFamilyLevel. Each of the two measures
// has a fixed part of this probability.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/compare/report/statistics.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

inline constexpr double kTimeLevel = 0.035;
inline constexpr double kAccuracyLevel = 0.015;
inline constexpr double kFamilyLevel = kTimeLevel + kAccuracyLevel;
// The smallest number of seeds with which a report claims a difference. Three runs may have almost
// no spread by chance, even if the variant diverges with other seeds; a test would then find
// differences that do not exist.
inline constexpr int kSeedsForClaims = 5;
// Two rows count as equal if the confidence interval of their difference lies within these margins:
// 0.5 percentage points of accuracy, or a factor of 1.1 in time.
inline constexpr double kEqualAccuracy = 0.005;
inline constexpr double kEqualTime = 1.1;

enum class Measure : std::uint8_t { kAccuracy, kTime };

// The difference between two rows `a` and `b`. For kAccuracy, `value` is accuracy(a) - accuracy(b),
// as a fraction. For kTime, `value` is log(time(a) / time(b)), with the times to the target.
struct PairDifference {
  std::size_t a = 0;  // indices of rows
  std::size_t b = 0;
  Measure measure = Measure::kAccuracy;
  double value = 0.0;
  double level = kFamilyLevel;
  double adjusted_p = 1.0;  // the difference is claimed if adjusted_p <= level
  int seeds = 0;            // number of seeds of the row with fewer seeds
  // `value`, `adjusted_p` and interval() are computed from the members below. runs: the test of the
  // difference by the spread of the runs alone. evaluation_variance: the variance of `value` that
  // the time between evaluations adds. means: the number of rows that are compared with each other.
  WelchTest runs;
  double evaluation_variance = 0.0;
  int means = 2;

  bool is_claimed() const noexcept { return adjusted_p <= level; }
  // Returns the test of `value`: `runs` with evaluation_variance as an additional source of error.
  WelchTest test() const;
  // Returns the confidence interval of `value`. With probability 1 - level, all intervals of a
  // measure contain their true differences. For kTime, the time between evaluations is a source of
  // error: a run reached the target at an unknown time between two evaluations. This time is taken
  // as uniformly distributed. This error cancels if the networks of both rows have bit-equal
  // weights. Otherwise the interval is infinite if a run reached the target at its first
  // evaluation.
  Interval interval() const;
  // Returns whether interval() lies within the margin of equality (kEqualAccuracy, kEqualTime).
  bool is_equal() const;
  // Returns the true difference that a comparison with `of_seeds` seeds and the same spread would
  // find with a probability of about 80 %. Returns nullopt if this difference is a factor above 100
  // or more than 100 percentage points.
  std::optional<double> detectable_with(int of_seeds) const;
};

// The comparison of the times to the target of two rows if some runs of at least one of the rows
// missed the target. The time of a run that missed the target is censored at its last evaluation.
// Times are rounded up to multiples of a unit, because they are no more exact than the time between
// evaluations. The unit is the longest time, over the runs that reached the target, between the
// evaluation that reached the target and the evaluation before it.
struct CensoredPair {
  std::size_t a = 0;  // indices of rows
  std::size_t b = 0;
  LogRankTest test;
  // The level at which the pair is tested; 0 if no claim is possible, however the times of the runs
  // were divided between the two rows.
  double level = 0.0;
  int seeds = 0;  // number of seeds of the row with fewer seeds
  // If `level` is 0: the number of seeds, above `seeds`, with which a claim would be possible.
  // Nullopt if `seeds` are enough, and a claim is impossible only because too few runs reached the
  // target.
  std::optional<int> seeds_needed{};

  bool is_claimed() const noexcept { return test.p_value <= level; }
};

// Tests the differences of all pairs of rows. A pair is left out if a row has fewer than
// kSeedsForClaims seeds or a failed run, if other programs disturbed a run of either row, or if the
// learning rate of either row is too large (VariantSummary::is_left_out()). Times
// are not compared if no run of either row reached the target. A row that equals an earlier row
// (VariantSummary::same_as) is represented by the earlier row. In comparisons of accuracy, the
// first of several rows with bit-equal network weights represents all of them.
class Claims {
 public:
  explicit Claims(const Rows& rows);

  // Returns the difference of row `a` from row `b`. Returns nullopt if the pair was left out, and
  // for kTime also if a run of either row missed the target.
  std::optional<PairDifference> difference(std::size_t a, std::size_t b, Measure measure) const;
  // Returns the comparison of the times of two rows if a run of either row missed the target;
  // otherwise nullopt.
  std::optional<CensoredPair> censored(std::size_t a, std::size_t b) const;
  // Returns whether it is claimed that row `a` reached the target sooner than row `b`.
  bool is_sooner(std::size_t a, std::size_t b) const;
  // Returns whether it is claimed that row `a` ended more accurate than row `b`.
  bool is_more_accurate(std::size_t a, std::size_t b) const;

  const std::vector<PairDifference>& all() const noexcept { return pairs_; }
  const std::vector<CensoredPair>& all_censored() const noexcept { return censored_; }

 private:
  void add_accuracies(const Rows& rows);
  void add_times(const Rows& rows);
  void share_time_level();

  std::vector<PairDifference> pairs_;   // a < b
  std::vector<CensoredPair> censored_;  // a < b
  // For each row, the index of the row that represents this row: of_accuracy_ in comparisons of
  // accuracy, of_time_ in comparisons of time.
  std::vector<std::size_t> of_accuracy_;
  std::vector<std::size_t> of_time_;
};

// Return whether a claim about the row's final accuracy, or about its time to the target, is
// possible.
bool has_claimable_accuracy(const VariantSummary& row);
bool has_claimable_time(const VariantSummary& row);
// Returns whether some runs of the row missed the target, and the times of the row can still be
// compared with the times of other rows (CensoredPair). The comparison requires that no run failed
// or was disturbed, that the runs have comparable times, and that there are at least
// kSeedsForClaims runs.
bool has_claimable_misses(const VariantSummary& row);

}  // namespace syncopate::bench
