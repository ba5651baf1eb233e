#include "bench/compare/report/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPower = 0.8;  // of PairDifference::detectable_with()

// Returns the part of the variance of the mean logarithm of the times that stems from evaluations.
// The target was reached at some time between two evaluations; that time is taken as uniformly
// distributed. It is a systematic error, because all seeds may reach the target at one point
// between two evaluations. Infinite for the first evaluation.
double evaluation_variance(const VariantSummary& row) {
  double sum = 0.0;
  for (std::size_t i = 0; i < row.reached_seconds.size(); ++i) {
    const double seconds = row.reached_seconds[i];
    const double before = std::max(0.0, seconds - row.reached_gaps[i]);
    // A gap that is all of the time but for rounding is the first one.
    sum += before < 1e-9 * seconds ? kInfinity : std::log(seconds / before);
  }
  const double width = sum / static_cast<double>(row.reached_seconds.size());
  return width * width / 12.0;
}

bool reached_at_same_samples(const VariantSummary& a, const VariantSummary& b) {
  return have_same_weights(a, b) && a.samples_to_target && b.samples_to_target &&
         a.samples_to_target->values == b.samples_to_target->values;
}

// Computes the p-value.
void close(PairDifference& pair) {
  constexpr double kRounding = 1e-9;  // evaluations at equal times differ by rounding
  const WelchTest test = pair.test();
  if (!std::isfinite(test.standard_error) || std::abs(pair.value) <= kRounding) return;
  pair.adjusted_p = test.p_value(pair.means);
}

PairDifference accuracy_pair(const Rows& rows, std::size_t a, std::size_t b) {
  const auto test = welch_test(rows[a].accuracy->values, rows[b].accuracy->values);
  check(test.has_value(), "a claimable accuracy has several finite values");
  PairDifference pair{.a = a,
                      .b = b,
                      .measure = Measure::kAccuracy,
                      .value = test->difference,
                      .level = kAccuracyLevel,
                      .runs = *test};
  // Values without any spread, as on a small test set, are no proof.
  if (test->standard_error == 0.0 && test->difference != 0.0) pair.runs.standard_error = kInfinity;
  return pair;
}

PairDifference time_pair(const Rows& rows, std::size_t a, std::size_t b) {
  const auto test =
      welch_test(logarithms_of(rows[a].reached_seconds), logarithms_of(rows[b].reached_seconds));
  check(test.has_value(), "a claimable time has several finite values");
  PairDifference pair{
      .a = a, .b = b, .measure = Measure::kTime, .value = test->difference, .runs = *test};
  // Rows with equal weights pass the target at the same sample, somewhere between the same
  // evaluations, which cancels in the ratio of their times.
  if (!reached_at_same_samples(rows[a], rows[b])) {
    pair.evaluation_variance = evaluation_variance(rows[a]) + evaluation_variance(rows[b]);
  }
  return pair;
}

std::vector<Duration> durations_of(const VariantSummary& row, double step) {
  constexpr double kRounding = 1e-6;  // of a step
  std::vector<Duration> all;
  const auto add = [&](const std::vector<double>& of, bool is_censored) {
    for (const double seconds : of) {
      all.push_back({std::ceil(seconds / step - kRounding), is_censored});
    }
  };
  add(row.reached_seconds, false);
  add(row.missed_seconds, true);
  return all;
}

CensoredPair censored_pair(const Rows& rows, std::size_t a, std::size_t b) {
  double step = 0.0;
  for (const std::size_t row : {a, b}) {
    for (const double gap : rows[row].reached_gaps) step = std::max(step, gap);
  }
  return {.a = a,
          .b = b,
          .test = log_rank_test(durations_of(rows[a], step), durations_of(rows[b], step)),
          .seeds = std::min(rows[a].done, rows[b].done)};
}

bool is_positive(double seconds) { return seconds > 0.0; }

// Returns for each row the first one that `stands_for` it, or the row itself.
template <typename StandsFor>
std::vector<std::size_t> representatives(const Rows& rows, StandsFor stands_for) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t first = 0;
    while (first < i && !stands_for(rows[first], rows[i])) ++first;
    all.push_back(first);
  }
  return all;
}

// Returns the least number of seeds with which an exact test can reach the level.
int seeds_to_reach(double level) {
  int seeds = kSeedsForClaims;
  while (least_permutation_p(seeds, seeds) > level) ++seeds;
  return seeds;
}

}  // namespace

WelchTest PairDifference::test() const { return runs.with_systematic_error(evaluation_variance); }

Interval PairDifference::interval() const {
  const WelchTest test = this->test();
  const double reach = std::isfinite(test.standard_error) ? test.reach(level, means) : kInfinity;
  return {value - reach, value + reach};
}

bool PairDifference::is_equal() const {
  const Interval interval = this->interval();
  const double margin = measure == Measure::kTime ? std::log(kEqualTime) : kEqualAccuracy;
  return -margin <= interval.low && interval.high <= margin;
}

std::optional<double> PairDifference::detectable_with(int of_seeds) const {
  const double most = measure == Measure::kTime ? std::log(100.0) : 1.0;
  const double factor = static_cast<double>(of_seeds) / seeds;
  const WelchTest test =
      runs.with_more_values(factor, seeds).with_systematic_error(evaluation_variance);
  if (!std::isfinite(test.standard_error)) return std::nullopt;
  const double found = test.detectable(level, means, kPower);
  return found <= most ? std::optional(found) : std::nullopt;
}

bool has_claimable_accuracy(const VariantSummary& row) {
  return row.accuracy && !row.is_left_out() && row.disturbed == 0 && row.failed == 0 &&
         row.done >= kSeedsForClaims && row.not_numbers() == 0;
}

bool has_claimable_time(const VariantSummary& row) {
  return row.seconds_to_target && !row.is_left_out() && row.has_comparable_times &&
         row.disturbed == 0 && row.reached >= kSeedsForClaims &&
         std::ranges::all_of(row.reached_seconds, is_positive);
}

bool has_claimable_misses(const VariantSummary& row) {
  return !row.missed_seconds.empty() && !row.is_left_out() && row.has_comparable_times &&
         row.disturbed == 0 && row.failed == 0 && row.done >= kSeedsForClaims &&
         std::ranges::all_of(row.reached_seconds, is_positive) &&
         std::ranges::all_of(row.missed_seconds, is_positive);
}

Claims::Claims(const Rows& rows) {
  of_accuracy_ = representatives(rows, [](const VariantSummary& a, const VariantSummary& b) {
    // A row that is not tested cannot stand for one that is.
    return have_same_weights(a, b) && has_claimable_accuracy(a) == has_claimable_accuracy(b);
  });
  for (std::size_t row = 0; row < rows.size(); ++row) {
    of_time_.push_back(rows[row].same_as.value_or(row));
  }
  add_accuracies(rows);
  add_times(rows);
  share_time_level();
  for (PairDifference& pair : pairs_) {
    pair.seeds = std::min(rows[pair.a].done, rows[pair.b].done);
    close(pair);
  }
}

void Claims::add_accuracies(const Rows& rows) {
  std::vector<std::size_t> tested;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (of_accuracy_[row] == row && has_claimable_accuracy(rows[row])) tested.push_back(row);
  }
  for (const std::size_t b : tested) {
    for (const std::size_t a : tested) {
      if (a >= b) break;
      pairs_.push_back(accuracy_pair(rows, a, b));
      pairs_.back().means = static_cast<int>(tested.size());
    }
  }
}

void Claims::add_times(const Rows& rows) {
  std::vector<std::size_t> tested;
  int complete = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (of_time_[row] != row) continue;
    if (has_claimable_time(rows[row])) ++complete;
    if (has_claimable_time(rows[row]) || has_claimable_misses(rows[row])) tested.push_back(row);
  }
  for (const std::size_t b : tested) {
    for (const std::size_t a : tested) {
      if (a >= b) break;
      if (has_claimable_time(rows[a]) && has_claimable_time(rows[b])) {
        pairs_.push_back(time_pair(rows, a, b));
        pairs_.back().means = complete;
      } else if (rows[a].reached + rows[b].reached > 0) {
        censored_.push_back(censored_pair(rows, a, b));
      }
    }
  }
}

// Divides the level of times among the pairs, in equal parts. A pair of censored times that cannot
// reach its part, however its durations were divided, takes none. Source: R. E. Tarone, Biometrics
// 46 (1990), 515-522.
void Claims::share_time_level() {
  const auto is_time = [](const PairDifference& pair) { return pair.measure == Measure::kTime; };
  const auto complete = std::ranges::count_if(pairs_, is_time);
  const auto sharing = [&](std::ptrdiff_t parts) {
    const double part = kTimeLevel / static_cast<double>(parts);
    return complete + std::ranges::count_if(censored_, [&](const CensoredPair& pair) {
             return pair.test.least_p <= part;
           });
  };
  std::ptrdiff_t parts = 1;
  while (sharing(parts) > parts) ++parts;
  const double bound = kTimeLevel / static_cast<double>(parts);
  const double part = kTimeLevel / static_cast<double>(std::max(sharing(parts), std::ptrdiff_t{1}));
  for (PairDifference& pair : pairs_) {
    if (is_time(pair)) pair.level = part * static_cast<double>(complete);
  }
  for (CensoredPair& pair : censored_) {
    if (pair.test.least_p <= bound) {
      pair.level = part;
    } else {
      const int seeds =
          seeds_to_reach(kTimeLevel / static_cast<double>(complete + std::ssize(censored_)));
      if (seeds > pair.seeds) pair.seeds_needed = seeds;
    }
  }
}

std::optional<PairDifference> Claims::difference(std::size_t a, std::size_t b,
                                                 Measure measure) const {
  const std::vector<std::size_t>& of = measure == Measure::kAccuracy ? of_accuracy_ : of_time_;
  const std::size_t first = of[a];
  const std::size_t second = of[b];
  for (const PairDifference& pair : pairs_) {
    if (pair.measure != measure) continue;
    if (pair.a == first && pair.b == second) return pair;
    if (pair.a != second || pair.b != first) continue;
    PairDifference turned = pair;
    turned.a = a;
    turned.b = b;
    turned.value = -pair.value;
    return turned;
  }
  return std::nullopt;
}

std::optional<CensoredPair> Claims::censored(std::size_t a, std::size_t b) const {
  for (const CensoredPair& pair : censored_) {
    if (pair.a == of_time_[a] && pair.b == of_time_[b]) return pair;
    if (pair.a != of_time_[b] || pair.b != of_time_[a]) continue;
    CensoredPair turned = pair;
    std::swap(turned.a, turned.b);
    turned.test.excess = -pair.test.excess;
    return turned;
  }
  return std::nullopt;
}

bool Claims::is_sooner(std::size_t a, std::size_t b) const {
  if (const auto time = difference(a, b, Measure::kTime)) {
    return time->is_claimed() && time->value < 0.0;
  }
  const auto pair = censored(a, b);
  return pair && pair->is_claimed() && pair->test.excess > 0.0;
}

bool Claims::is_more_accurate(std::size_t a, std::size_t b) const {
  const auto accuracy = difference(a, b, Measure::kAccuracy);
  return accuracy && accuracy->is_claimed() && accuracy->value > 0.0;
}

}  // namespace syncopate::bench
