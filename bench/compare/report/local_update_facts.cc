#include "bench/compare/report/local_update_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "bench/compare/report/tuning_report.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

// Returns how many bytes a worker sends per step, by variant; "" if no variant counted them.
std::string bytes_words(const Comparison& comparison) {
  std::vector<std::string> texts;
  for (const ComparedVariant& variant : comparison.variants) {
    double bytes = 0.0;
    double steps = 0.0;
    for (const RunResult* const run : variant.results()) {
      for (const WorkerMetrics& worker : run->times) {
        if (!worker.bytes_sent) continue;
        bytes += static_cast<double>(*worker.bytes_sent);
        steps += static_cast<double>(worker.steps);
      }
    }
    if (steps == 0.0) continue;
    texts.push_back(fmt::format("{:.3g} kB ({})", 1e-3 * bytes / steps, variant.label));
  }
  return texts.empty() ? "" : "sent by a worker per step, on average: " + listed(texts);
}

// Returns which values of rounds were not searched, and a verb for them.
std::string given_words(const Searched& searched) {
  const std::string outer =
      searched.outer_rate ? "outer step without its learning rate" : "outer step";
  return searched.rounds ? fmt::format("The {} was", outer)
                         : fmt::format("The number of steps and the {} were", outer);
}

}  // namespace

std::vector<Fact> local_update_facts(const Comparison& comparison) {
  std::vector<std::string> variants;
  for (const ComparedVariant& variant : comparison.variants) {
    if (variant.steps_in_round == 0) continue;
    variants.push_back(fmt::format("{}: {} in a round, outer step {}", variant.label,
                                   count_text(static_cast<int>(variant.steps_in_round), "step"),
                                   variant.outer_step));
  }
  if (variants.empty()) return {};
  const bool has_outer_optimizer =
      std::ranges::any_of(comparison.variants, &ComparedVariant::has_outer_optimizer);
  std::vector<Fact> facts = {
      {"rounds",
       fmt::format("each worker trains the steps of a round with values of its own, at the rate of "
                   "one worker's batch, or of the sums before the first round. Then the workers "
                   "exchange displacements, and an outer step "
                   "changes the model. Evaluations wait for the end of a round. {}. {} given, not "
                   "tuned{}",
                   fmt::join(variants, "; "), given_words(searched_in(comparison)),
                   has_outer_optimizer ? ". An outer optimizer helps one worker, too: its row with "
                                         "one worker shows the gain without distribution"
                                       : ""),
       false}};
  if (const std::string bytes = bytes_words(comparison); !bytes.empty()) {
    facts.push_back({"bytes", bytes, false});
  }
  return facts;
}

}  // namespace syncopate::bench
