#include "bench/compare/report/answer_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

constexpr int kOtherTargets = 3;
constexpr double kTargetStep = 0.01;  // one point
constexpr double kTargetDigits = 1e9;

// Returns the answer of the same runs with another rule or target. If it does not state the ratio
// of the two rows whose ratio is the answer of `outcome`, adds this ratio.
std::string answer_of(const Outcome& outcome, const Comparison& other) {
  const Outcome result = outcome_of("", other);
  const AnswerWords words = answer_words(result);
  std::string text = fmt::format("{}: {}", words.use, words.why);
  const std::size_t best = outcome.answer.reference;
  const auto& next = outcome.answer.next;
  if (!next || (result.answer.next == next && result.answer.reference == best)) return text;
  const auto is_reached = [](const RowOutcome& cell) {
    return cell.runs > 0 && cell.reached == cell.runs;
  };
  const RowOutcome& first = result.cells[best];
  const RowOutcome& second = result.cells[*next];
  if (!is_reached(first) || !is_reached(second)) return text;
  return text + fmt::format("; {} took {} times as long as {}", short_name(outcome.rows[*next]),
                            ratio_text(second.seconds / first.seconds),
                            short_name(outcome.rows[best]));
}

// Returns the samples between the first two evaluations of the row's runs, as text; "" if unknown.
std::string samples_between(const Outcome& outcome, std::size_t row) {
  for (const RunResult* const run : outcome.comparison.variants[row].results()) {
    if (run->curve.size() < 2) continue;
    return decimal_text(static_cast<double>(run->curve[1].samples - run->curve[0].samples), 0);
  }
  return "";
}

}  // namespace

std::string parts_of_answer(const Outcome& outcome) {
  if (!outcome.answer.has_winners() || !outcome.answer.next) return "";
  const VariantSummary& best = outcome.rows[outcome.answer.reference];
  const VariantSummary& next = outcome.rows[*outcome.answer.next];
  if (!best.samples_per_second || !next.samples_per_second || !best.samples_to_target ||
      !next.samples_to_target) {
    return "";
  }
  return fmt::format(
      "{} trained {} times as many samples per second as {}, and needed {} times as many samples "
      "to {}. Their times differ by about the first factor divided by the second one. The second "
      "one counts samples in steps of evaluations, of {} and {} samples",
      short_name(best), ratio_text(best.samples_per_second->mean / next.samples_per_second->mean),
      short_name(next), ratio_text(best.samples_to_target->mean / next.samples_to_target->mean),
      target_text(outcome.comparison), samples_between(outcome, outcome.answer.reference),
      samples_between(outcome, *outcome.answer.next));
}

std::string spikes_words(const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  if (!comparison.target_accuracy) return "";
  std::vector<std::string> counts;
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    const auto runs = comparison.variants[row].results();
    const auto fell = std::ranges::count_if(runs, [&](const RunResult* run) {
      return fell_below_again(*run, *comparison.target_accuracy);
    });
    if (fell > 0) {
      counts.push_back(
          fmt::format("{} of {} runs of {}", fell, runs.size(), outcome.rows[row].name));
    }
  }
  if (counts.empty()) return "";
  return fmt::format(
      "below the target again later: {}. If all later evaluations had to be at the target, the "
      "answer would be: {}. This answer is judged alone, and not covered by the {} of \"tests\"",
      listed(counts), answer_of(outcome, with_lasting_target(comparison)),
      percent_text(1.0 - kFamilyLevel));
}

std::string other_targets_words(const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  if (!comparison.target_accuracy || !outcome.answer.is_claim()) return "";
  const double least = accuracy_losses(outcome).low;
  std::vector<std::string> answers;
  for (int points = 1; points <= kOtherTargets; ++points) {
    Comparison other = comparison;
    // Rounded, so that an accuracy of 0.95 is at a target of 0.93 + 0.02.
    other.target_accuracy =
        std::round(kTargetDigits * (*comparison.target_accuracy + points * kTargetStep)) /
        kTargetDigits;
    if (*other.target_accuracy > least) break;
    answers.push_back(fmt::format("{}: \"{}\"", target_text(other), answer_of(outcome, other)));
  }
  if (answers.empty()) return "";
  return fmt::format(
      "answers with another target, from the same runs{}: {}. Each is judged alone, and not "
      "covered "
      "by the {} of \"tests\"",
      comparison.is_tuned() ? ", which were tuned for this one" : "", fmt::join(answers, "; "),
      percent_text(1.0 - kFamilyLevel));
}

}  // namespace syncopate::bench
