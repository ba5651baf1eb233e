#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {

ComparedRun made_up_run(std::uint64_t seed, const std::vector<double>& accuracies,
                        double seconds_per_sample) {
  RunResult result;
  result.seed = seed;
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    const auto samples = static_cast<std::int64_t>(100 * (i + 1));
    const double seconds = seconds_per_sample * static_cast<double>(samples);
    result.curve.push_back({.step = static_cast<std::int64_t>(i + 1),
                            .samples = samples,
                            .seconds = seconds,
                            .loss = 1.0 - accuracies[i],
                            .accuracy = accuracies[i]});
    result.samples = samples;
    result.seconds = seconds;
  }
  result.steps = static_cast<std::int64_t>(accuracies.size());
  result.samples_per_second = 1.0 / seconds_per_sample;
  result.test_accuracy = accuracies.back();
  result.test_loss = 1.0 - accuracies.back();
  return {.file = "runs/seed" + std::to_string(seed) + ".jsonl", .result = std::move(result)};
}

ComparedRun failed_run(std::uint64_t seed, const std::string& reason) {
  RunResult result;
  result.seed = seed;
  result.failure = reason;
  return {.file = "runs/failed.jsonl", .result = std::move(result)};
}

ComparedRun pending_run() { return {.file = "runs/pending.jsonl", .result = {}}; }

ComparedVariant made_up_variant(const std::string& label, int workers,
                                const std::vector<double>& seconds_to_95,
                                const std::vector<double>& final_accuracies) {
  ComparedVariant variant{.label = label, .workers = workers, .runs = {}};
  for (std::size_t i = 0; i < seconds_to_95.size(); ++i) {
    // 95 % is seen at the second of three measurements, after 200 samples.
    variant.runs.push_back(
        made_up_run(i + 1, {0.5, 0.95, final_accuracies[i]}, seconds_to_95[i] / 200.0));
  }
  return variant;
}

Comparison made_up_comparison(std::vector<ComparedVariant> variants) {
  Comparison comparison;
  comparison.command = "syncopate-bench compare";
  comparison.budget = "3 epochs of digits";
  comparison.target_accuracy = 0.95;
  comparison.variants = std::move(variants);
  return comparison;
}

}  // namespace syncopate::bench
