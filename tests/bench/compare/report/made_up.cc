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
    result.summary.samples = samples;
    result.summary.seconds = seconds;
  }
  result.summary.steps = static_cast<std::int64_t>(accuracies.size());
  result.summary.samples_per_second = 1.0 / seconds_per_sample;
  result.summary.test.metric.value = accuracies.back();
  result.summary.test.loss = 1.0 - accuracies.back();
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
  ComparedVariant variant{
      .label = label, .workers = workers, .runs = {}, .is_distributed = workers > 1};
  for (std::size_t i = 0; i < seconds_to_95.size(); ++i) {
    // The second of a run's three evaluations, after 200 samples, reaches the target of 95 %.
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

ComparedVariant asynchronous(ComparedVariant variant) {
  variant.is_synchronous = false;
  return variant;
}

ComparedVariant reaching(ComparedVariant variant, std::size_t count) {
  for (std::size_t run = count; run < variant.runs.size(); ++run) {
    for (CurvePoint& point : variant.runs[run].result->curve) point.accuracy = 0.5;
  }
  return variant;
}

Comparison scaled(std::vector<ComparedVariant> variants) {
  for (ComparedVariant& variant : variants) {
    for (ComparedRun& run : variant.runs) {
      if (!run.result || run.result->curve.size() < 2) continue;
      CurvePoint before = run.result->curve[1];
      before.seconds *= 0.98;
      before.accuracy = 0.9;
      run.result->curve.insert(run.result->curve.begin() + 1, before);
    }
  }
  Comparison comparison = made_up_comparison(std::move(variants));
  comparison.learning_rate_rule = "linear";
  return comparison;
}

testing::AssertionResult contains_words(const std::string& text, const std::string& words) {
  if (text.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << words << "\" is not in: " << text;
}

Comparison with_everything(const std::vector<std::string>& labels) {
  Comparison comparison =
      made_up_comparison({made_up_variant(labels.front(), 1, {40, 42, 44}, {0.97, 0.971, 0.972})});
  for (std::size_t i = 1; i < labels.size(); ++i) {
    const double sooner = 1.0 + static_cast<double>(i - 1);
    ComparedVariant variant = made_up_variant(labels[i], 2, {10 * sooner, 11 * sooner, 12 * sooner},
                                              {0.96, 0.961, 0.962});
    for (ComparedRun& run : variant.runs) {
      run.result->predicted_communication_seconds = 0.002;
      for (const int worker : {0, 1}) {
        run.result->summary.staleness.push_back(
            {.worker = worker, .histogram = ps::StalenessHistogram::of({1, 3, 1}, 5.0, 2)});
        run.result->times.push_back({.worker = worker,
                                     .steps = 100,
                                     .samples = 150,
                                     .seconds = 10.0,
                                     .compute_seconds = 6.0,
                                     .communication_exposed_seconds = 1.0,
                                     .peers_wait_seconds = 2.0,
                                     .input_wait_seconds = 0.5,
                                     .bytes_sent = 4'000'000,
                                     .bytes_received = 5'000'000});
      }
    }
    variant.runs.push_back(failed_run(4, labels[i]));
    comparison.variants.push_back(std::move(variant));
  }
  return comparison;
}

}  // namespace syncopate::bench
