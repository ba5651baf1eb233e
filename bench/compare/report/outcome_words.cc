#include "bench/compare/report/outcome_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/compare/report/verdict_words.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

using Indices = std::vector<std::size_t>;

std::string time_of(const Outcome& outcome, std::size_t row) {
  return short_seconds(outcome.cells[row].seconds) + " s";
}

Indices rows_with_workers(const Rows& rows) {
  Indices all;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].workers > 1) all.push_back(row);
  }
  return all;
}

std::vector<std::string> short_names(const Outcome& outcome, const Indices& rows) {
  std::vector<std::string> names;
  for (const std::size_t row : rows) names.push_back(short_name(outcome.rows[row]));
  return names;
}

std::string sooner_than_next(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  return fmt::format("{} times sooner than the {}, {}{}", ratio_text(answer.next_ratio.value),
                     rank_of_next(outcome), short_name(outcome.rows[*answer.next]),
                     interval_text(answer.next_ratio));
}

std::string tie_sentence(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  const std::size_t first = answer.winners.front();
  if (!answer.next) {
    return fmt::format("Use {}: {} reached {} in about {}.", winners_text(outcome),
                       answer.winners.size() == 2 ? "both" : "all", target_text(outcome.comparison),
                       time_of(outcome, first));
  }
  if (are_all_with_workers(outcome)) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0.0;
    for (const std::size_t row : answer.winners) {
      const double ratio = outcome.cells[*answer.next].seconds / outcome.cells[row].seconds;
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
    return fmt::format("Use {}: all {} reached {} {} to {} times sooner than {}.",
                       winners_text(outcome), count_word(answer.winners.size()),
                       target_text(outcome.comparison), ratio_text(least), ratio_text(most),
                       short_name(outcome.rows[*answer.next]));
  }
  return fmt::format("Use {}: {} reached {} in {}, {}.", winners_text(outcome),
                     short_name(outcome.rows[first]), target_text(outcome.comparison),
                     time_of(outcome, first), sooner_than_next(outcome));
}

// Returns "; five seeds can show a factor of 1.7, for 1.2 about 40 are needed" as a sentence of its
// own, "" if the factor is not known. Source: the error of a mean falls with the root of the seeds.
std::string power_sentence(const Answer& answer) {
  if (answer.detectable <= 1.0) return "";
  const double shown = std::ceil(answer.detectable * 10.0) / 10.0;
  const std::string can =
      fmt::format(" {} seeds can show a factor of {}",
                  capitalised(count_word(static_cast<std::size_t>(std::max(answer.seeds, 0)))),
                  ratio_text(shown));
  const std::optional<int> needed = seeds_needed(answer);
  return needed ? fmt::format("{}; for 1.2, about {} are needed.", can, *needed) : can + ".";
}

std::string not_decided_sentence(const Outcome& outcome) {
  std::optional<std::size_t> first = outcome.soonest;
  const std::string seeds = count_text(outcome.answer.seeds, "seed");
  if (outcome.answer.seeds == 0) return "Not decided: no run has ended well.";
  if (!first) return fmt::format("Not decided: {} cannot show a difference.", seeds);
  return fmt::format("Not decided: {} was first, but {} cannot show a difference.",
                     short_name(outcome.rows[*first]), seeds);
}

// Returns how many runs were at the target and fell below it again.
std::pair<int, int> count_spikes(const Outcome& outcome) {
  int spikes = 0;
  int runs = 0;
  const double target = outcome.comparison.target_accuracy.value_or(2.0);
  for (const ComparedVariant& variant : outcome.comparison.variants) {
    for (const ComparedRun& run : variant.runs) {
      if (!run.is_done()) continue;
      const std::vector<CurvePoint>& curve = run.result->curve;
      const auto reached = std::ranges::find_if(
          curve, [&](const CurvePoint& point) { return point.accuracy >= target; });
      if (reached == curve.end()) continue;
      ++runs;
      if (std::any_of(reached, curve.end(),
                      [&](const CurvePoint& point) { return point.accuracy < target; })) {
        ++spikes;
      }
    }
  }
  return {spikes, runs};
}

// Returns such as "mlp on digits".
std::string what_is_trained(const Outcome& outcome) {
  const std::string& budget = outcome.comparison.budget;
  const std::size_t of = budget.find(" of ");
  const std::string model =
      outcome.comparison.model.empty() ? "a network" : outcome.comparison.model;
  return of == std::string::npos ? model : model + " on " + budget.substr(of + 4);
}

int most_workers_of(const Outcome& outcome) {
  int most = 0;
  for (const VariantSummary& row : outcome.rows) most = std::max(most, row.workers);
  return most;
}

int most_servers(const Comparison& comparison) {
  int most = 0;
  for (const ComparedVariant& variant : comparison.variants) {
    most = std::max(most, variant.servers);
  }
  return most;
}

bool has_serverless_tasks(const Comparison& comparison) {
  return std::ranges::any_of(comparison.variants, [](const ComparedVariant& variant) {
    return variant.servers == 0 && variant.is_distributed.value_or(false);
  });
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

std::string count_word(std::size_t count) {
  constexpr std::array kWords = {"no",   "one", "two",   "three", "four",
                                 "five", "six", "seven", "eight"};
  return count < kWords.size() ? kWords.at(count) : std::to_string(count);
}

std::string interval_text(TimeRatio ratio) {
  return std::isfinite(ratio.low) && std::isfinite(ratio.high)
             ? fmt::format(" ({} to {})", ratio_text(ratio.low), ratio_text(ratio.high))
             : "";
}

std::string listed_or(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

bool are_all_with_workers(const Outcome& outcome) {
  Indices winners = outcome.answer.winners;
  std::ranges::sort(winners);
  return winners.size() > 2 && winners == rows_with_workers(outcome.rows);
}

std::string winners_text(const Outcome& outcome) {
  const Indices& winners = outcome.answer.winners;
  if (!are_all_with_workers(outcome)) return listed_or(short_names(outcome, winners));
  const int workers = outcome.rows[winners.front()].workers;
  return fmt::format("any {}-worker strategy", count_word(static_cast<std::size_t>(workers)));
}

std::string rank_of_next(const Outcome& outcome) {
  const Kind next = outcome.rows[*outcome.answer.next].kind;
  const auto is_of_its_kind = [&](std::size_t row) { return outcome.rows[row].kind == next; };
  const bool has_other = outcome.answer.winners.size() > 1 &&
                         std::ranges::none_of(outcome.answer.winners, is_of_its_kind);
  if (has_other && next == Kind::kSynchronous) return "best sync";
  if (has_other && next == Kind::kAsynchronous) return "best async";
  return "next";
}

std::string verdict_sentence(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  const std::string target = target_text(outcome.comparison);
  switch (answer.form) {
    case AnswerForm::kWinner:
      if (!answer.next) break;
      return fmt::format("Use {}: it reached {} in {}, {}.", winners_text(outcome), target,
                         time_of(outcome, answer.winners.front()), sooner_than_next(outcome));
    case AnswerForm::kTie:
      return tie_sentence(outcome);
    case AnswerForm::kNoDifference:
      return fmt::format("No difference found: all {} reached {} in {} to {}.{}",
                         count_word(answer.winners.size()), target,
                         short_seconds(outcome.cells[answer.winners.front()].seconds),
                         time_of(outcome, answer.winners.back()), power_sentence(answer));
    case AnswerForm::kEqual:
      return fmt::format("Equal: all {} reached {} in the same time, within a factor of 1.1.",
                         count_word(answer.winners.size()), target);
    case AnswerForm::kMissed:
      return fmt::format("Use {}: {} of {} runs reached {}, of {} none.", winners_text(outcome),
                         outcome.rows[answer.winners.front()].reached, answer.seeds, target,
                         answer.missed.size() + answer.winners.size() == outcome.rows.size()
                             ? "the others"
                             : listed(short_names(outcome, answer.missed)));
    case AnswerForm::kNotReached:
      return fmt::format("No answer yet: no strategy reached {} with all seeds.", target);
    case AnswerForm::kNotDecided:
      return not_decided_sentence(outcome);
    case AnswerForm::kBusy:
      return fmt::format("No answer: other programs used up to {} of the CPUs.",
                         percent_text(std::round(100.0 * most_disturbance(outcome.rows)) / 100.0));
  }
  return "";
}

bool has_tested_accuracies(const Outcome& outcome) {
  return std::ranges::any_of(outcome.claims.all(), [](const PairDifference& pair) {
    return pair.measure == Measure::kAccuracy;
  });
}

std::string accuracy_sentence(const Outcome& outcome) {
  const Rows& rows = outcome.rows;
  std::optional<std::size_t> best;
  double low = 1.0;
  double high = 0.0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row].accuracy || rows[row].not_numbers() > 0) continue;
    const double accuracy = rows[row].accuracy->mean;
    low = std::min(low, accuracy);
    if (best && accuracy <= high) continue;
    high = accuracy;
    best = row;
  }
  if (!best) return "";
  Indices below;
  double largest = 0.0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!outcome.claims.is_more_accurate(*best, row)) continue;
    below.push_back(row);
    largest = std::max(largest, high - rows[row].accuracy->mean);
  }
  const std::string range =
      fmt::format("{} to {} %", decimal_text(100.0 * low, 1), decimal_text(100.0 * high, 1));
  if (below.empty()) {
    return fmt::format(
        "Accuracy: {} ({}).",
        has_tested_accuracies(outcome) ? "no difference found" : "too few seeds to compare", range);
  }
  return fmt::format("Accuracy: {} ended {}{} points below {}.",
                     listed(short_names(outcome, below)), below.size() > 1 ? "up to " : "",
                     decimal_text(100.0 * largest, 1), short_name(rows[*best]));
}

std::string next_sentence(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  switch (answer.form) {
    case AnswerForm::kNoDifference:
      if (const std::optional<int> needed = seeds_needed(answer)) {
        return fmt::format("Next: --seeds {} with the same --report, or choose by convenience.",
                           *needed);
      }
      return "Next: more --evaluations, or choose by convenience.";
    case AnswerForm::kNotDecided:
      return answer.seeds < kSeedsForTime
                 ? fmt::format("Next: --seeds {} with the same --report.", kSeedsForTime)
                 : "";
    case AnswerForm::kNotReached:
      return "Next: more --epochs, or a lower --target-accuracy.";
    case AnswerForm::kBusy:
      return "Next: the same command on a quiet machine.";
    default:
      return "";
  }
}

std::string question_of(const Outcome& outcome) {
  return fmt::format("Which strategy trains {} soonest with {}?", what_is_trained(outcome),
                     count_text(most_workers_of(outcome), "worker"));
}

std::string setting_sentence(const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  std::string text = fmt::format("{}, {}", what_is_trained(outcome),
                                 count_text(most_workers_of(outcome), "worker"));
  if (!comparison.faults.empty()) text += ", " + comparison.faults;
  text += comparison.has_virtual_clock ? ", simulated; " : ", real processes; ";
  return text + count_text(outcome.answer.seeds, "seed");
}

std::vector<ShortWarning> short_warnings(const Outcome& outcome) {
  constexpr std::size_t kMost = 3;
  const Comparison& comparison = outcome.comparison;
  std::vector<ShortWarning> all;
  int failed = 0;
  int runs = 0;
  for (const VariantSummary& row : outcome.rows) {
    failed += row.failed + row.pending;
    runs += row.ended() + row.pending;
  }
  if (failed > 0) {
    all.push_back({"incomplete", fmt::format("{} of {} runs failed or are missing", failed, runs)});
  }
  const std::string& rule = comparison.learning_rate_rule;
  if (rule == "preset") {
    all.push_back({"not tuned", "the preset's learning rates; others may change the order"});
  } else if (rule == "none") {
    all.push_back({"not tuned", "one learning rate for all; others may change the order"});
  } else if (rule != "given" && !rule.empty()) {
    all.push_back({"not tuned", "rates follow the batch only; others may change the order"});
  }
  if (const auto use = cpu_use(comparison); use && use->is_shared) {
    all.push_back({"CPUs", use->words});
  }
  if (const auto [spikes, reached] = count_spikes(outcome); spikes > 0) {
    all.push_back({"spikes", fmt::format("{} of {} runs fell below {} again later", spikes, reached,
                                         target_text(outcome.comparison))});
  }
  if (const int servers = most_servers(comparison);
      servers > 0 && has_serverless_tasks(comparison)) {
    all.push_back({"machines", fmt::format("parameter servers used {} more than all-reduce",
                                           count_text(servers, "machine"))});
  }
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

}  // namespace syncopate::bench
