// Which differences between the rows of a comparison are certain. Every pair of rows is compared in
// final accuracy and in time to the target. The probability that a report of identical variants
// claims any difference is at most kFamilyLevel. Each measure has a fixed part of it.
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
// The least number of seeds for a claim. Three runs that diverged or did not may have almost no
// spread by chance, which a test takes for certainty.
inline constexpr int kSeedsForClaims = 5;
// Two rows count as equal if the interval of their difference lies within these margins: 0.5 points
// of accuracy, and a factor of 1.1 in time.
inline constexpr double kEqualAccuracy = 0.005;
inline constexpr double kEqualTime = 1.1;

enum class Measure : std::uint8_t { kAccuracy, kTime };

// The difference between two rows: the accuracy of `a` less the accuracy of `b`, as a fraction; or
// the logarithm of the time of `a` to the target divided by the time of `b`.
struct PairDifference {
  std::size_t a = 0;  // indices of rows
  std::size_t b = 0;
  Measure measure = Measure::kAccuracy;
  double value = 0.0;
  double level = kFamilyLevel;
  double adjusted_p = 1.0;  // the difference is claimed if it is at most `level`
  int seeds = 0;            // number of seeds of the row with fewer seeds
  // The numbers above follow from these: the test of the runs alone, the variance added by the
  // distance between evaluations, and the number of compared rows.
  WelchTest runs;
  double evaluation_variance = 0.0;
  int means = 2;

  bool is_claimed() const noexcept { return adjusted_p <= level; }
  // Returns the test of the runs with the distance between evaluations.
  WelchTest test() const;
  // Returns the interval of `value`. All intervals of a measure hold together with probability
  // 1 - level. In times the distance between evaluations is a source of error: a run reached the
  // target at some time since its previous evaluation, any of them equally likely. It cancels
  // between rows with equal weights. Otherwise the interval is infinite if the target was reached
  // at the first evaluation.
  Interval interval() const;
  // Whether the interval lies within the margin of equality.
  bool is_equal() const;
  // Returns the difference that this number of seeds with the same spread would show with a
  // probability of about 80 %. Empty if it is larger than any that exists: a factor above 100 or
  // more than 100 points.
  std::optional<double> detectable_with(int of_seeds) const;
};

// The comparison in time of two rows where one or both missed the target with some runs. Times
// of such runs are censored at their last evaluation. Because of the distance between evaluations,
// times count in steps of the longest one before an evaluation that reached the target.
struct CensoredPair {
  std::size_t a = 0;  // indices of rows
  std::size_t b = 0;
  LogRankTest test;
  double level = 0.0;  // the level at which the pair was tested; 0 if it could not be reached
  int seeds = 0;       // number of seeds of the row with fewer seeds
  // The number of seeds, above these, with which the level can be reached. Empty if it was reached,
  // or could have been if fewer runs had missed the target.
  std::optional<int> seeds_needed;

  bool is_claimed() const noexcept { return test.p_value <= level; }
};

// The comparisons of all pairs of rows. A pair is left out if a row has fewer than kSeedsForClaims
// seeds or a failed run, if other programs disturbed a run of either row, and in time if no run of
// either row reached the target. A row that equals an earlier one (VariantSummary::same_as) is not
// compared; the earlier row stands for it. Rows with equal weights are one row in accuracy.
class Claims {
 public:
  explicit Claims(const Rows& rows);

  // Returns the difference of row `a` from row `b`; empty if the pair was left out, and in time if
  // either row missed the target with a run.
  std::optional<PairDifference> difference(std::size_t a, std::size_t b, Measure measure) const;
  // Returns the comparison of two rows where one missed the target with a run.
  std::optional<CensoredPair> censored(std::size_t a, std::size_t b) const;
  // Whether it is claimed that row `a` reached the target sooner than row `b`.
  bool is_sooner(std::size_t a, std::size_t b) const;
  // Whether it is claimed that row `a` ended more accurate than row `b`.
  bool is_more_accurate(std::size_t a, std::size_t b) const;

  const std::vector<PairDifference>& all() const noexcept { return pairs_; }
  const std::vector<CensoredPair>& all_censored() const noexcept { return censored_; }

 private:
  void add_accuracies(const Rows& rows);
  void add_times(const Rows& rows);
  void share_time_level();

  std::vector<PairDifference> pairs_;   // a < b
  std::vector<CensoredPair> censored_;  // a < b
  // For each row, the row that stands for it in a measure:
  std::vector<std::size_t> of_accuracy_;
  std::vector<std::size_t> of_time_;
};

// Whether a claim about the row's final accuracy, or about its time to the target, is possible.
bool has_claimable_accuracy(const VariantSummary& row);
bool has_claimable_time(const VariantSummary& row);
// Whether a claim is possible about the times of a row that missed the target with some runs.
bool has_claimable_misses(const VariantSummary& row);

}  // namespace syncopate::bench
