#include "bench/compare/report/outcome.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace syncopate::bench {
namespace {

using Indices = std::vector<std::size_t>;

// Returns the geometric mean of a row's times to the target; empty unless every run reached it,
// after some time.
std::optional<double> mean_time(const VariantSummary& row) {
  if (!row.seconds_to_target) return std::nullopt;
  double sum = 0.0;
  for (const double seconds : row.reached_seconds) {
    if (!(seconds > 0.0)) return std::nullopt;  // the first evaluation, before any time was counted
    sum += std::log(seconds);
  }
  return std::exp(sum / static_cast<double>(row.reached_seconds.size()));
}

// Returns the time of row `a` over the time of row `b` with its interval; empty if they were not
// compared.
std::optional<TimeRatio> time_ratio(const Claims& claims, std::size_t a, std::size_t b) {
  const auto time = claims.difference(a, b, Measure::kTime);
  if (!time) return std::nullopt;
  const Interval interval = time->interval();
  return TimeRatio{.value = std::exp(time->value),
                   .low = std::exp(interval.low),
                   .high = std::exp(interval.high)};
}

// Finds the answer of an outcome that has its rows and claims.
class AnswerFinder {
 public:
  explicit AnswerFinder(const Outcome& outcome) : rows_(outcome.rows), claims_(outcome.claims) {
    answer_.seeds = std::numeric_limits<int>::max();
    has_target_ = outcome.comparison.target_accuracy.has_value();
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const VariantSummary& summary = rows_[row];
      is_busy_ |= summary.disturbed > 0;
      if (summary.is_left_out()) continue;
      ++judged_;
      const bool is_whole = summary.is_complete() && summary.not_numbers() == 0;
      if (!is_whole) continue;
      answer_.seeds = std::min(answer_.seeds, summary.done);
      const bool is_guessing = summary.is_at_chance(outcome.comparison.chance);
      if (has_claimable_time(summary) && !is_guessing) timed_.push_back(row);
      if (has_target_ && summary.reached < summary.done) answer_.missed.push_back(row);
    }
    if (answer_.seeds == std::numeric_limits<int>::max()) answer_.seeds = 0;
    std::ranges::stable_sort(timed_, {}, [&](std::size_t row) { return *mean_time(rows_[row]); });
  }

  Answer find() {
    answer_.form = form();
    return std::move(answer_);
  }

 private:
  AnswerForm form() {
    if (is_busy_) return AnswerForm::kBusy;
    if (!has_target_) return AnswerForm::kNotDecided;
    if (timed_.empty()) {
      const bool is_open = std::ranges::any_of(rows_, [&](const VariantSummary& row) {
        return !row.is_left_out() && row.reached > 0 &&
               (row.reached == row.done || answer_.seeds < kSeedsForClaims);
      });
      if (0 < answer_.seeds && answer_.seeds < kSeedsForClaims) {
        answer_.seeds_needed = kSeedsForClaims;
      }
      const bool is_missed = answer_.seeds > 0 && !is_open;
      return is_missed ? AnswerForm::kNotReached : AnswerForm::kNotDecided;
    }
    divide();
    const auto is_behind = [&](std::size_t row) { return claims_.is_sooner(timed_.front(), row); };
    answer_.are_misses_shown = std::ranges::all_of(answer_.missed, is_behind);
    if (answer_.next) return distinct() == 1 ? AnswerForm::kWinner : AnswerForm::kTie;
    if (std::ranges::any_of(answer_.missed, is_behind)) return AnswerForm::kMissed;
    if (timed_.size() < std::max<std::size_t>(judged_, 2)) {
      need_decision();
      return AnswerForm::kNotDecided;
    }
    if (are_all_equal()) return AnswerForm::kEqual;
    find_power();
    return AnswerForm::kNoDifference;
  }

  // Divides the rows with a time into those that may be as soon as the first one and the
  // others, and finds the first of the others.
  void divide() {
    for (const std::size_t row : timed_) {
      const auto winner = std::ranges::find_if(
          answer_.winners, [&](std::size_t other) { return claims_.is_sooner(other, row); });
      if (winner == answer_.winners.end()) {
        answer_.winners.push_back(row);
      } else if (!answer_.next ||
                 (answer_.reference != timed_.front() && *winner == timed_.front())) {
        answer_.next = row;
        answer_.reference = *winner;
        answer_.next_ratio = *time_ratio(claims_, row, *winner);
      }
    }
  }

  std::ptrdiff_t distinct() const {
    return std::ranges::count_if(answer_.winners,
                                 [&](std::size_t row) { return !rows_[row].same_as; });
  }

  // Calls `take(pair)` for the comparisons of the winners in time.
  template <typename Take>
  void for_winners(Take take) const {
    for (const std::size_t a : answer_.winners) {
      for (const std::size_t b : answer_.winners) {
        if (a >= b) continue;
        if (const auto time = claims_.difference(a, b, Measure::kTime)) take(*time);
      }
    }
  }

  bool are_all_equal() const {
    bool are_equal = true;
    for_winners([&](const PairDifference& pair) { are_equal &= pair.is_equal(); });
    return are_equal;
  }

  // Finds the factor that these seeds show between any two winners, and how many would show 1.2.
  void find_power() {
    constexpr double kFactor = 1.2;
    constexpr int kMost = 1000;
    std::optional<PairDifference> least_certain;
    double largest = 0.0;
    for_winners([&](const PairDifference& pair) {
      const double one = pair.detectable_with(answer_.seeds).value_or(kMost);
      if (one <= largest) return;
      largest = one;
      least_certain = pair;
    });
    if (!least_certain) return;
    if (largest < kMost) answer_.detectable = std::exp(largest);
    const auto shows = [&](int seeds) {
      return least_certain->detectable_with(seeds).value_or(kMost) <= std::log(kFactor);
    };
    if (shows(answer_.seeds) || !shows(kMost)) return;
    int low = answer_.seeds;
    int high = kMost;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (shows(middle) ? high : low) = middle;
    }
    answer_.seeds_needed = high > 20 ? (high + 9) / 10 * 10 : high;
  }

  // Finds with how many seeds the rows that missed the target could be told from the soonest.
  void need_decision() {
    for (const std::size_t row : answer_.missed) {
      const auto pair = claims_.censored(row, timed_.front());
      if (!pair || !pair->seeds_needed) continue;
      answer_.seeds_needed = std::max(answer_.seeds_needed.value_or(0), *pair->seeds_needed);
    }
  }

  const Rows& rows_;
  const Claims& claims_;
  Answer answer_;
  Indices timed_;           // rows with a time that can be compared, the soonest first
  std::size_t judged_ = 0;  // rows about which claims can be made
  bool is_busy_ = false;
  bool has_target_ = false;
};

RowOutcome cell_of(const Outcome& outcome, std::size_t row) {
  const VariantSummary& summary = outcome.rows[row];
  RowOutcome cell{.reached = summary.reached, .runs = summary.ended() + summary.pending};
  if (summary.is_left_out()) {
    cell.state = RowState::kLeftOut;
    return cell;
  }
  if (!summary.is_complete()) {
    cell.state = summary.failed > 0 ? RowState::kFailed : RowState::kPending;
    return cell;
  }
  const std::optional<double> seconds = mean_time(summary);
  if (summary.disturbed > 0) {
    cell.state = RowState::kBusy;
  } else if (!seconds || !outcome.soonest) {
    cell.state = RowState::kMissed;
  } else {
    const Indices& winners = outcome.answer.winners;
    const bool is_taken = std::ranges::find(winners, row) != winners.end();
    const bool is_one = std::ranges::count_if(winners, [&](std::size_t one) {
                          return !outcome.rows[one].same_as;
                        }) == 1;
    cell.state = !is_taken || (is_one && !outcome.answer.has_winners()) ? RowState::kReached
                 : is_one && outcome.answer.has_winners()               ? RowState::kWinner
                                                                        : RowState::kTie;
    cell.seconds = *seconds;
    cell.ratio = *seconds / *mean_time(outcome.rows[*outcome.soonest]);
    if (row != *outcome.soonest) cell.over_best = time_ratio(outcome.claims, row, *outcome.soonest);
  }
  return cell;
}

}  // namespace

std::string_view name_of(AnswerForm form) {
  constexpr std::array kNames = {"winner", "tie",         "no difference", "equal",
                                 "missed", "not reached", "not decided",   "busy"};
  return kNames.at(static_cast<std::size_t>(form));
}

std::vector<std::size_t> sorted_rows(const Outcome& outcome) {
  Indices order(outcome.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t row) {
    const RowOutcome& cell = outcome.cells[row];
    return cell.ratio > 0.0 ? cell.ratio : std::numeric_limits<double>::infinity();
  });
  return order;
}

Indices left_out_rows(const Outcome& outcome) {
  Indices rows;
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    if (outcome.rows[row].is_left_out()) rows.push_back(row);
  }
  return rows;
}

Outcome outcome_of(std::string cluster, Comparison comparison) {
  Rows rows = summarise(comparison);
  Claims claims(rows);
  Outcome outcome{.cluster = std::move(cluster),
                  .comparison = std::move(comparison),
                  .rows = std::move(rows),
                  .claims = std::move(claims)};
  outcome.answer = AnswerFinder(outcome).find();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    const std::optional<double> seconds = mean_time(outcome.rows[row]);
    const bool has_cell = outcome.rows[row].is_complete() && outcome.rows[row].disturbed == 0 &&
                          !outcome.rows[row].is_left_out();
    if (!seconds || !has_cell || *seconds >= least) continue;
    least = *seconds;
    outcome.soonest = row;
  }
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    outcome.cells.push_back(cell_of(outcome, row));
  }
  return outcome;
}

}  // namespace syncopate::bench
