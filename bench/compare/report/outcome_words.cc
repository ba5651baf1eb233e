#include "bench/compare/report/outcome_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <sstream>

#include "bench/compare/report/strategy_names.h"
#include "bench/compare/report/tuning_report.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

using Indices = std::vector<std::size_t>;

std::vector<std::string> short_names(const Rows& rows, const Indices& of) {
  std::vector<std::string> names;
  for (const std::size_t row : of) names.push_back(short_name(rows[row]));
  return names;
}

// Returns "five"; digits from nine on.
std::string count_word(std::size_t count) {
  constexpr std::array kWords = {"no",   "one", "two",   "three", "four",
                                 "five", "six", "seven", "eight"};
  return count < kWords.size() ? kWords.at(count) : std::to_string(count);
}

// Returns "all five", or "both".
std::string all_of(std::size_t count) { return count == 2 ? "both" : "all " + count_word(count); }

// Returns the winners that are not recommended.
Indices unshown_winners(const Outcome& outcome) {
  const Indices recommended = recommended_rows(outcome);
  Indices rows = outcome.answer.winners;
  std::erase_if(rows, [&](std::size_t row) {
    return std::ranges::find(recommended, row) != recommended.end();
  });
  return rows;
}

// Returns "1.2 to 1.9": how many times sooner than the next row the winners were.
std::string sooner_range(const Outcome& outcome) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (const std::size_t row : outcome.answer.winners) {
    const double ratio = outcome.cells[*outcome.answer.next].seconds / outcome.cells[row].seconds;
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  return fmt::format("{} to {}", ratio_text(least), ratio_text(most));
}

// Returns "next", or "soonest sync" if all winners are of another kind than the next row.
std::string rank_of_next(const Outcome& outcome) {
  const Kind next = outcome.rows[*outcome.answer.next].kind;
  const auto is_of_its_kind = [&](std::size_t row) { return outcome.rows[row].kind == next; };
  const bool has_other = outcome.answer.winners.size() > 1 &&
                         std::ranges::none_of(outcome.answer.winners, is_of_its_kind);
  if (has_other && next == Kind::kSynchronous) return "soonest sync";
  if (has_other && next == Kind::kAsynchronous) return "soonest async";
  return "next";
}

// Returns "the rate of async is too large", of the rows that claims leave out.
std::string large_rates_words(const Outcome& outcome) {
  const std::vector<std::string> names = short_names(outcome.rows, left_out_rows(outcome));
  return fmt::format("the {} of {} {} too large for stale gradients",
                     names.size() == 1 ? "rate" : "rates", listed(names),
                     names.size() == 1 ? "is" : "are");
}

std::string why_winners(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  const std::string next = short_name(outcome.rows[*answer.next]);
  const auto is_complete = [](const VariantSummary* row) { return row->is_complete(); };
  const std::string among = !std::ranges::all_of(judged_rows(outcome.rows), is_complete)
                                ? ", of the complete variants"
                            : answer.are_misses_shown ? ""
                                                      : ", of those without misses";
  if (are_all_with_workers(outcome)) {
    return fmt::format("{} are {} times sooner than {}{}", all_of(answer.winners.size()),
                       sooner_range(outcome), next, among);
  }
  const Indices others = unshown_winners(outcome);
  const bool is_one = answer.winners.size() - others.size() == 1;
  // Rows that were not shown to be slower may lie before the next one.
  const std::string rank = rank_of_next(outcome);
  const bool is_ranked = others.empty() || rank != "next";
  return fmt::format(
      "{} is {} times sooner than {}{}{}{}{}",
      is_one ? "it" : short_name(outcome.rows[answer.reference]),
      ratio_text(answer.next_ratio.value), is_ranked ? fmt::format("the {}, ", rank) : "", next,
      interval_text(answer.next_ratio), among,
      others.empty()
          ? ""
          : fmt::format("; {} {} not shown to be slower", listed(short_names(outcome.rows, others)),
                        others.size() == 1 ? "was" : "were"));
}

std::string why_no_difference(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  const std::string least = short_seconds(outcome.cells[answer.winners.front()].seconds);
  const std::string most = short_seconds(outcome.cells[answer.winners.back()].seconds);
  std::string text = fmt::format("{} took {} s, and {} seeds ", all_of(answer.winners.size()),
                                 least == most ? "about " + most : least + " to " + most,
                                 count_word(static_cast<std::size_t>(answer.seeds)));
  if (!answer.detectable) return text + "cannot show a difference here";
  text += fmt::format("can show a factor of {}",
                      ratio_text(std::ceil(*answer.detectable * 10.0) / 10.0));
  return answer.seeds_needed ? fmt::format("{}; 1.2 needs about {}", text, *answer.seeds_needed)
                             : text;
}

std::string why_missed(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  int most = 0;
  int runs = 0;
  for (const std::size_t row : answer.missed) {
    most = std::max(most, outcome.rows[row].reached);
    runs = std::max(runs, outcome.rows[row].done);
  }
  return fmt::format("{} reached {} with every seed, the others with {}",
                     answer.winners.size() == 1 ? "it" : "they", target_text(outcome.comparison),
                     most == 0 ? "none" : fmt::format("at most {} of {}", most, runs));
}

// Whether runs are missing that the same command would train.
bool has_pending(const Outcome& outcome) {
  return std::ranges::any_of(outcome.rows, [](const auto& row) { return row.pending > 0; });
}

// Returns a row that missed the target in runs which ended before the soonest row reached it, so
// that no number of seeds shows a difference.
std::optional<std::size_t> row_that_ended_early(const Outcome& outcome) {
  if (!outcome.soonest) return std::nullopt;
  for (const std::size_t row : outcome.answer.missed) {
    const std::vector<double>& seconds = outcome.rows[row].missed_seconds;
    if (!seconds.empty() && std::ranges::max(seconds) < outcome.cells[*outcome.soonest].seconds) {
      return row;
    }
  }
  return std::nullopt;
}

std::string why_not_decided(const Outcome& outcome) {
  const Rows& rows = outcome.rows;
  const std::string seeds = count_text(outcome.answer.seeds, "seed");
  const Indices left_out = left_out_rows(outcome);
  if (!left_out.empty() && rows.size() < left_out.size() + 2) return large_rates_words(outcome);
  if (rows.size() < 2) return "there is one variant alone";
  if (outcome.answer.seeds == 0) {
    return has_pending(outcome) ? "no variant has all of its runs yet" : "no variant ended well";
  }
  if (!outcome.comparison.target_accuracy) return "there is no target accuracy";
  if (!rows.front().has_comparable_times) return "times of several machines are not compared";
  if (std::ranges::count_if(rows, &VariantSummary::is_complete) < 2) {
    return "only one variant has all of its runs";
  }
  if (!outcome.soonest) return seeds + " cannot show a difference";
  if (const auto row = row_that_ended_early(outcome)) {
    return fmt::format("the runs of {} ended after {} s, before {} reached {} ({} s)",
                       short_name(rows[*row]),
                       short_seconds(std::ranges::max(rows[*row].missed_seconds)),
                       short_name(rows[*outcome.soonest]), target_text(outcome.comparison),
                       short_seconds(outcome.cells[*outcome.soonest].seconds));
  }
  return fmt::format("{} was first, but {} cannot show a difference",
                     short_name(rows[*outcome.soonest]), seeds);
}

std::string why_not_reached(const Outcome& outcome) {
  const auto learning = std::ranges::count_if(outcome.rows, &VariantSummary::is_still_learning);
  const std::string text =
      fmt::format("no strategy reached {} with all seeds", target_text(outcome.comparison));
  if (learning == 0) return text;
  return fmt::format("{}, and {} of {} are still learning", text, learning, outcome.rows.size());
}

int most_workers_of(const Outcome& outcome) {
  return std::ranges::max(outcome.rows, {}, &VariantSummary::workers).workers;
}

// Returns such as "mlp on digits".
std::string what_is_trained(const Comparison& comparison) {
  const std::size_t of = comparison.budget.find(" of ");
  const std::string model = comparison.model.empty() ? "a network" : comparison.model;
  if (of == std::string::npos || comparison.budget.ends_with(" s of training")) return model;
  return model + " on " + comparison.budget.substr(of + 4);
}

// Returns " (about 5 minutes)" for this many runs of each variant; "" if their time is not known.
std::string minutes_text(const Comparison& comparison, double runs) {
  const double seconds =
      comparison.run_wall_seconds * runs * static_cast<double>(comparison.variants.size());
  return seconds > 0.0 ? fmt::format(" ({})", minutes_words(seconds)) : "";
}

// Returns "learning-rate=0.0025 in the braces of parameter-server:async, or --tune": what to change
// in the first row that claims leave out; "" if there is none.
std::string better_rate_words(const Outcome& outcome) {
  const Indices left_out = left_out_rows(outcome);
  if (left_out.empty()) return "";
  const VariantSummary& row = outcome.rows[left_out.front()];
  return fmt::format("learning-rate={} in the braces of {}{}", rate_text(*row.better_rate),
                     row.name, outcome.cluster.empty() ? ", or --tune" : "");
}

// Returns "--epochs 4" for a budget of "2 epochs of digits": twice as much.
std::string doubled_budget(const Outcome& outcome) {
  std::istringstream budget(outcome.comparison.budget);
  double amount = 0.0;
  std::string unit;
  if (!(budget >> amount >> unit)) return "a larger budget";
  return fmt::format("{} {}{}",
                     unit.starts_with("epoch") ? "--epochs"
                     : unit == "s"             ? "--seconds"
                                               : "--updates",
                     exact_text(2.0 * amount),
                     minutes_text(outcome.comparison, 2.0 * outcome.answer.seeds));
}

}  // namespace

std::size_t count_words(const std::string& text) {
  std::istringstream words(text);
  std::size_t count = 0;
  for (std::string word; words >> word;) {
    if (std::ranges::any_of(word, [](unsigned char c) { return std::isalnum(c) != 0; })) ++count;
  }
  return count;
}

std::string minutes_words(double seconds) {
  return "about " + count_text(static_cast<int>(std::ceil(seconds / 60.0)), "minute");
}

std::string rate_text(double rate) {
  const double unit = std::pow(10.0, std::floor(std::log10(rate)) - 1.0);
  constexpr double kRounding = 1e-9;
  return exact_text(std::stod(fmt::format("{:.2g}", unit * std::floor(rate / unit + kRounding))));
}

std::string interval_text(TimeRatio ratio) {
  return ratio.has_interval()
             ? fmt::format(" ({} to {})", ratio_text(ratio.low), ratio_text(ratio.high))
             : "";
}

std::string state_text(const RowOutcome& cell) {
  switch (cell.state) {
    case RowState::kBusy:
      return "busy";
    case RowState::kFailed:
      return "failed";
    case RowState::kPending:
      return "pending";
    case RowState::kLeftOut:
      return "left out";
    default:
      return fmt::format("{} of {}", cell.reached, cell.runs);
  }
}

Indices recommended_rows(const Outcome& outcome) {
  Indices rows = outcome.answer.winners;
  if (!outcome.answer.next) return rows;
  std::erase_if(
      rows, [&](std::size_t row) { return !outcome.claims.is_sooner(row, *outcome.answer.next); });
  return rows;
}

bool are_all_with_workers(const Outcome& outcome) {
  const Indices& winners = outcome.answer.winners;
  if (winners.empty()) return false;
  const int workers = outcome.rows[winners.front()].workers;
  const auto has_workers = [](const VariantSummary& row) { return row.workers > 1; };
  return winners.size() > 2 && unshown_winners(outcome).empty() && workers > 1 &&
         std::ssize(winners) == std::ranges::count_if(outcome.rows, has_workers) &&
         std::ranges::all_of(winners,
                             [&](std::size_t row) { return outcome.rows[row].workers == workers; });
}

std::string winners_text(const Outcome& outcome) {
  const Indices winners = recommended_rows(outcome);
  if (!are_all_with_workers(outcome)) return listed(short_names(outcome.rows, winners), "or");
  const int workers = outcome.rows[winners.front()].workers;
  return fmt::format("any {}-worker strategy", count_word(static_cast<std::size_t>(workers)));
}

AnswerWords answer_words(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  switch (answer.form) {
    case AnswerForm::kWinner:
      return {"Use " + winners_text(outcome), why_winners(outcome)};
    case AnswerForm::kTie:
      return {fmt::format("Use {}{}", winners_text(outcome),
                          recommended_rows(outcome).size() > 1 ? " (a tie)" : ""),
              why_winners(outcome)};
    case AnswerForm::kMissed:
      return {"Use " + winners_text(outcome), why_missed(outcome)};
    case AnswerForm::kNoDifference:
      return {"No difference found", why_no_difference(outcome)};
    case AnswerForm::kEqual:
      return {"Equal", fmt::format("{} reached {} in the same time, within a factor of 1.1",
                                   all_of(answer.winners.size()), target_text(outcome.comparison))};
    case AnswerForm::kNotReached:
      return {"No answer yet", why_not_reached(outcome)};
    case AnswerForm::kNotDecided:
      return {"Not decided", why_not_decided(outcome)};
    case AnswerForm::kBusy:
      return {
          "No answer",
          fmt::format("other programs used up to {} of the CPUs",
                      percent_text(std::round(100.0 * most_disturbance(outcome.rows)) / 100.0))};
  }
  return {};
}

std::string verdict_sentence(const Outcome& outcome) {
  const AnswerWords words = answer_words(outcome);
  const std::string sentence = fmt::format("{}: {}.", words.use, words.why);
  return outcome.answer.is_claim() ? prefixed_with_rates(outcome.comparison, sentence) : sentence;
}

std::string prefixed_with_rates(const Comparison& comparison, std::string sentence) {
  const bool is_tuned = comparison.is_tuned();
  if (!is_tuned && !is_untuned(comparison.learning_rate_rule)) return sentence;
  sentence.front() = static_cast<char>(std::tolower(sentence.front()));
  return (is_tuned ? "At tuned rates, " : "At untuned rates, ") + sentence;
}

AccuracyLosses accuracy_losses(const Outcome& outcome) {
  const Rows& rows = outcome.rows;
  AccuracyLosses losses;
  losses.is_tested = std::ranges::any_of(outcome.claims.all(), [](const PairDifference& pair) {
    return pair.measure == Measure::kAccuracy;
  });
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row].accuracy || rows[row].not_numbers() > 0 || rows[row].is_left_out()) continue;
    const double accuracy = rows[row].accuracy->mean;
    losses.low = std::min(losses.low, accuracy);
    losses.high = std::max(losses.high, accuracy);
    Indices below;
    double largest = 0.0;
    for (std::size_t other = 0; other < rows.size(); ++other) {
      if (!outcome.claims.is_more_accurate(row, other)) continue;
      below.push_back(other);
      largest = std::max(largest, accuracy - rows[other].accuracy->mean);
    }
    if (largest <= losses.largest) continue;
    losses.best = row;
    losses.below = below;
    losses.largest = largest;
  }
  return losses;
}

std::string accuracy_sentence(const AccuracyLosses& losses, const Rows& rows) {
  const std::vector<const VariantSummary*> judged = judged_rows(rows);
  if (losses.high < losses.low || judged.size() < 2) return "";
  if (losses.below.empty()) {
    const std::string low = decimal_text(100.0 * losses.low, 1);
    const std::string high = decimal_text(100.0 * losses.high, 1);
    const std::string range = low == high ? high + " %" : fmt::format("{} to {} %", low, high);
    const int seeds = std::ranges::min(judged, {}, &VariantSummary::done)->done;
    if (!losses.is_tested && seeds >= kSeedsForClaims) return fmt::format("Accuracy: {}.", range);
    return fmt::format("Accuracy: {} ({}).",
                       losses.is_tested ? "no difference found" : "too few seeds to compare",
                       range);
  }
  return fmt::format("Accuracy: {} ended {}{} points below {}.",
                     listed(short_names(rows, losses.below)),
                     losses.below.size() > 1 || losses.is_of_several ? "up to " : "",
                     decimal_text(100.0 * losses.largest, 1), short_name(rows[*losses.best]));
}

std::string next_sentence(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  std::string seeds;
  if (answer.seeds_needed) {
    seeds = fmt::format("Next: --seeds {} with the same --report{}", *answer.seeds_needed,
                        minutes_text(outcome.comparison, *answer.seeds_needed - answer.seeds));
  }
  if (const std::string rate = better_rate_words(outcome); !rate.empty()) {
    return fmt::format("Next: {}, in another --report.", rate);
  }
  switch (answer.form) {
    case AnswerForm::kNoDifference:
      return seeds.empty() ? "Next: more --evaluations, or choose by convenience."
                           : seeds + ", or choose by convenience.";
    case AnswerForm::kNotDecided:
      if (has_pending(outcome)) return "Next: the same command with this --report.";
      if (row_that_ended_early(outcome)) {
        return fmt::format("Next: {} in another --report.", doubled_budget(outcome));
      }
      return seeds.empty() ? "" : seeds + ".";
    case AnswerForm::kNotReached:
      return fmt::format("Next: {} in another --report, or a lower --target-accuracy.",
                         std::ranges::any_of(outcome.rows, &VariantSummary::is_still_learning)
                             ? doubled_budget(outcome)
                             : "other learning rates");
    case AnswerForm::kBusy:
      return "Next: the same command on a quiet machine.";
    default:
      return "";
  }
}

std::string question_of(const Outcome& outcome) {
  return fmt::format("Which strategy trains {} to {} soonest with {}?",
                     what_is_trained(outcome.comparison), target_text(outcome.comparison),
                     count_text(most_workers_of(outcome), "worker"));
}

std::string target_source(const Comparison& comparison) {
  if (!comparison.derived_target) return "";
  return fmt::format(", {} of the best of {}", percent_text(kTargetShare),
                     comparison.derived_target->baseline);
}

std::string setting_sentence(const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  std::string text = fmt::format("{}, {}", what_is_trained(comparison),
                                 count_text(most_workers_of(outcome), "worker"));
  const bool is_batch_tuned = searched_in(comparison).batch;
  if (!comparison.batch.empty() && !is_batch_tuned) text += ", " + comparison.batch;
  if (!comparison.faults.empty()) text += ", " + comparison.faults;
  text += comparison.has_virtual_clock ? ", simulated; " : ", real processes; ";
  text +=
      outcome.answer.seeds > 0 ? count_text(outcome.answer.seeds, "seed") : "no complete variant";
  const std::string source = target_source(comparison);
  if (!source.empty()) text += fmt::format("; target {}{}", target_text(comparison), source);
  const std::string tuned = tuned_values(outcome);
  return tuned.empty() ? text : fmt::format("{}; tuned: {}", text, tuned);
}

}  // namespace syncopate::bench
