#include "bench/compare/report/answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace syncopate::bench {
namespace {

using Indices = std::vector<std::size_t>;

// Whether every row is claimed to be within the margin of equality of every other.
bool are_all_equal(const Indices& rows, const Claims& claims) {
  for (const std::size_t a : rows) {
    for (const std::size_t b : rows) {
      if (a >= b) continue;
      const auto time = claims.difference(a, b, Measure::kTime);
      if (!time || !time->is_equal()) return false;
    }
  }
  return true;
}

double largest_detectable(const Indices& rows, const Claims& claims) {
  double largest = 0.0;
  for (const std::size_t row : rows) {
    if (row == rows.front()) continue;
    const auto time = claims.difference(rows.front(), row, Measure::kTime);
    if (time) largest = std::max(largest, std::exp(time->detectable));
  }
  return std::isfinite(largest) ? largest : 0.0;
}

// Divides the rows with a time, the soonest first, into those that cannot be told apart from the
// soonest and those that are slower.
void divide(const Indices& timed, const Claims& claims, Indices& front, Indices& slower) {
  for (const std::size_t row : timed) {
    const bool is_behind =
        std::ranges::any_of(front, [&](std::size_t other) { return claims.is_sooner(other, row); });
    (is_behind ? slower : front).push_back(row);
  }
}

// Whether chance alone would hardly give the row all of its runs at the target and the others none:
// each pair is tested, at a level that holds for all of them.
bool is_miss_shown(const Rows& rows, std::size_t winner, const Indices& missed) {
  return std::ranges::all_of(missed, [&](std::size_t row) {
    const double p = fisher_exact_p(rows[winner].reached, rows[winner].done, 0, rows[row].done);
    return p * static_cast<double>(missed.size()) <= kFamilyLevel;
  });
}

}  // namespace

std::string_view name_of(AnswerForm form) {
  constexpr std::array kNames = {"winner", "tie",         "no difference", "equal",
                                 "missed", "not reached", "not decided",   "busy"};
  return kNames.at(static_cast<std::size_t>(form));
}

std::optional<double> mean_time(const VariantSummary& row) {
  if (!row.seconds_to_target || row.reached_seconds.empty()) return std::nullopt;
  double sum = 0.0;
  for (const double seconds : row.reached_seconds) {
    if (!(seconds > 0.0)) return std::nullopt;  // the first evaluation, before any time was counted
    sum += std::log(seconds);
  }
  return std::exp(sum / static_cast<double>(row.reached_seconds.size()));
}

std::optional<TimeRatio> time_ratio(const Claims& claims, std::size_t a, std::size_t b) {
  const auto time = claims.difference(a, b, Measure::kTime);
  if (!time) return std::nullopt;
  return TimeRatio{.value = std::exp(time->value),
                   .low = std::exp(time->interval.low),
                   .high = std::exp(time->interval.high)};
}

std::optional<int> seeds_needed(const Answer& answer) {
  constexpr double kFactor = 1.2;
  constexpr double kMost = 1000.0;
  if (answer.detectable <= kFactor || answer.seeds < 2) return std::nullopt;
  const double times = std::log(answer.detectable) / std::log(kFactor);
  const double seeds = std::ceil(static_cast<double>(answer.seeds) * times * times);
  if (!(seeds < kMost)) return std::nullopt;
  const auto whole = static_cast<int>(seeds);
  return whole > 20 ? (whole + 9) / 10 * 10 : whole;
}

Answer answer_of(const Comparison& comparison, const Rows& rows, const Claims& claims) {
  Answer answer;
  Indices timed;
  int most_reached = 0;
  answer.seeds = std::numeric_limits<int>::max();
  for (const std::size_t row : choices(rows, comparison.chance)) {
    answer.seeds = std::min(answer.seeds, rows[row].done);
    most_reached = std::max(most_reached, rows[row].reached);
    if (rows[row].disturbed > 0) answer.form = AnswerForm::kBusy;
    if (has_claimable_time(rows[row])) timed.push_back(row);
    if (rows[row].reached == 0) answer.missed.push_back(row);
  }
  if (answer.seeds == std::numeric_limits<int>::max()) answer.seeds = 0;
  if (answer.form == AnswerForm::kBusy) return answer;
  if (timed.empty()) {
    const bool has_seeds = answer.seeds >= kSeedsForTime || most_reached == 0;
    answer.form = has_seeds && answer.seeds > 0 ? AnswerForm::kNotReached : AnswerForm::kNotDecided;
    return answer;
  }
  std::ranges::stable_sort(timed, {}, [&](std::size_t row) { return *mean_time(rows[row]); });
  Indices slower;
  divide(timed, claims, answer.winners, slower);
  for (const std::size_t row : slower) {
    if (!claims.is_sooner(answer.winners.front(), row)) continue;
    answer.next = row;
    answer.next_ratio = *time_ratio(claims, row, answer.winners.front());
    break;
  }
  answer.detectable = largest_detectable(answer.winners, claims);
  if (!slower.empty()) {
    answer.form = answer.winners.size() == 1 ? AnswerForm::kWinner : AnswerForm::kTie;
  } else if (timed.size() == 1 && !answer.missed.empty() &&
             is_miss_shown(rows, timed.front(), answer.missed)) {
    answer.form = AnswerForm::kMissed;
  } else if (timed.size() < 2 || timed.size() < rows.size()) {
    answer.form = AnswerForm::kNotDecided;
  } else {
    answer.form = are_all_equal(timed, claims) ? AnswerForm::kEqual : AnswerForm::kNoDifference;
  }
  return answer;
}

}  // namespace syncopate::bench
