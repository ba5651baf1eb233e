#include "bench/compare/report/training_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "bench/compare/report/outcome_words.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns how a variant's rate rises at the beginning, such as "; rises over 20 updates, 10 % of
// the run"; "" if it does not.
std::string warmup_words(const Outcome& outcome, std::size_t row, int warmup) {
  if (warmup == 0) return "";
  const VariantSummary& summary = outcome.rows[row];
  std::string words =
      fmt::format("; rises over {}, {:.0f} % of the run", count_text(warmup, "update"),
                  100.0 * warmup / summary.updates->mean);
  if (const auto& samples = summary.samples_to_target) {
    words += fmt::format(" and {:.0f} % of the samples to {}",
                         std::min(100.0, 100.0 * warmup * *summary.batch() / samples->mean),
                         target_text(outcome.comparison));
  }
  return words;
}

// Returns "0.1 (one-device), 0.8 (async; rises over 20 updates)"; "" if rates are unknown.
std::string rates_text(const Outcome& outcome) {
  std::map<std::pair<double, std::string>, std::vector<std::string>> variants;
  bool warms_up = false;
  for (std::size_t row = 0; row < outcome.rows.size(); ++row) {
    const ComparedVariant& variant = outcome.comparison.variants[row];
    const std::vector<const RunResult*> runs = variant.results();
    if (!variant.learning_rate || runs.empty()) continue;
    const double rate = *variant.learning_rate * variant.learning_rate_factor.value_or(1.0);
    const std::string rise = warmup_words(outcome, row, runs.front()->warmup_updates);
    warms_up = warms_up || !rise.empty();
    variants[{rate, rise}].push_back(variant.label);
  }
  if (variants.empty()) return "";
  std::vector<std::string> rates;
  for (const auto& [rate, labels] : variants) {
    rates.push_back(fmt::format("{} ({}{})", exact_text(rate.first), listed(labels), rate.second));
  }
  return listed(rates) + ". They change during a run only with --lr-schedule" +
         (warms_up ? " and where they rise. The time while a rate rises counts as training time; "
                     "only rates that were multiplied for larger updates rise, linearly"
                   : "");
}

// Flags that other facts state as they were applied, and flags that stand in a variant's label.
constexpr std::array<std::string_view, 7> kOtherFacts = {
    "--learning-rate", "--learning-rate-scale", "--reference-batch-size", "--warmup-epochs",
    "--consistency",   "--max-staleness",       "--backup-workers"};

// Returns the flags that decide what an update computes, with their values: first those that are
// equal in all variants or off, then the others with their variants.
std::string hyperparameters_text(const Comparison& comparison) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> labels_by_value;
  for (const ComparedVariant& variant : comparison.variants) {
    std::istringstream words(variant.update_flags);
    for (std::string flag, value; words >> flag >> value;) {
      if (std::ranges::find(kOtherFacts, flag) != kOtherFacts.end()) continue;
      labels_by_value[flag][value].push_back(variant.label);
    }
  }
  if (labels_by_value.empty()) return "";
  std::vector<std::string> of_all;
  std::vector<std::string> of_some;
  for (const auto& [flag, values] : labels_by_value) {
    for (const auto& [value, labels] : values) {
      const std::string words = flag + " " + value;
      const bool is_off = value == "absent" || value == "none" || value == "off";
      if (labels.size() == comparison.variants.size() || (values.size() == 1 && is_off)) {
        of_all.push_back(words);
      } else {
        of_some.push_back(fmt::format("{} ({})", words, listed(labels)));
      }
    }
  }
  return fmt::format("{}{}{}. Where there are servers, they make the update of the variables",
                     fmt::join(of_all, " "), of_all.empty() || of_some.empty() ? "" : "; ",
                     listed(of_some));
}

// Returns how claims leave out rows with a large rate; "" if stable rates are unknown.
std::string stable_rate_text(const Comparison& comparison) {
  std::vector<std::string> rates;
  for (const ComparedVariant& variant : comparison.variants) {
    if (!variant.stable_rate) continue;
    rates.push_back(fmt::format("{} ({})", rate_text(*variant.stable_rate), variant.label));
  }
  if (rates.empty()) return "";
  return fmt::format(
      "largest rates, in factors of 2, at which the loss of one worker without momentum fell in "
      "100 updates: {}. Claims leave out a variant if its rate x (1 + staleness) / (1 - momentum) "
      "is larger by more than the square root of 2",
      listed(rates));
}

}  // namespace

std::vector<Fact> training_facts(const Outcome& outcome) {
  std::vector<Fact> facts = {
      {"rates", rates_text(outcome)},
      {"optimizer", hyperparameters_text(outcome.comparison)},
      {"stable rate", stable_rate_text(outcome.comparison)},
  };
  std::erase_if(facts, [](const Fact& fact) { return fact.text.empty(); });
  return facts;
}

}  // namespace syncopate::bench
