#include "bench/compare/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/compare/report/statistics.h"
#include "bench/plots/text.h"

namespace syncopate::bench {
namespace {

std::optional<Sample> sample_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  Sample sample;
  sample.mean = mean(values);
  sample.deviation = standard_deviation(values);
  sample.values = std::move(values);
  return sample;
}

// Returns the value of `quantity` for every successful run.
template <typename Quantity>
std::optional<Sample> over_runs(const ComparedVariant& variant, Quantity quantity) {
  std::vector<double> values;
  for (const ComparedRun& run : variant.runs) {
    if (run.is_done()) values.push_back(quantity(*run.result));
  }
  return sample_of(std::move(values));
}

void count_runs(const ComparedVariant& variant, VariantSummary& row) {
  for (const ComparedRun& run : variant.runs) {
    if (run.is_done()) {
      ++row.done;
      row.most_disturbance =
          std::max(row.most_disturbance, run.result->others_cpu_share.value_or(0.0));
      if (run.result->is_disturbed()) ++row.disturbed;
    } else if (run.has_failed()) {
      ++row.failed;
      row.failures.push_back(fmt::format("seed {}: {}", run.result->seed, *run.result->failure));
    } else {
      ++row.pending;
    }
  }
}

// Returns each distinct note once; a note that not all runs have is preceded by their seeds.
std::vector<std::string> merged_notes(const ComparedVariant& variant) {
  std::vector<std::string> texts;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    for (const std::string& note : run.result->notes) {
      if (std::ranges::find(texts, note) == texts.end()) texts.push_back(note);
    }
  }
  for (std::string& text : texts) {
    std::string seeds;
    bool is_on_all = true;
    for (const ComparedRun& run : variant.runs) {
      if (!run.is_done()) continue;
      if (std::ranges::find(run.result->notes, text) == run.result->notes.end()) {
        is_on_all = false;
      } else {
        seeds += fmt::format("{}{}", seeds.empty() ? "" : ", ", run.result->seed);
      }
    }
    if (!is_on_all) text = fmt::format("seed {}: {}", seeds, text);
  }
  return texts;
}

void add_target(const ComparedVariant& variant, double target, VariantSummary& row) {
  std::vector<double> samples;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done()) continue;
    const auto point = time_to_target(*run.result, target);
    if (!point) continue;
    row.reached_seconds.push_back(point->seconds);
    row.reached_gaps.push_back(point->gap_seconds);
    row.reached_gap_samples.push_back(point->gap_samples);
    row.seeds.push_back(run.result->seed);
    samples.push_back(static_cast<double>(point->samples));
  }
  row.reached = static_cast<int>(samples.size());
  if (row.reached < row.ended()) return;
  row.seconds_to_target = sample_of(row.reached_seconds);
  row.samples_to_target = sample_of(std::move(samples));
}

// Runs without servers have no histograms of staleness.
bool has_staleness(const ComparedVariant& variant) {
  return std::ranges::any_of(variant.runs, [](const ComparedRun& run) {
    return run.is_done() && !run.result->summary.staleness.empty();
  });
}

std::vector<double> learning_rates_of(const ComparedVariant& variant) {
  std::vector<double> rates;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done() || run.result->training.empty()) continue;
    const double rate = run.result->training.front().learning_rate;
    if (!std::isnan(rate)) rates.push_back(rate);
  }
  return rates;
}

// If comparison.json has no is_synchronous, a variant with stale gradients is asynchronous.
bool is_synchronous(const ComparedVariant& variant) {
  const auto is_stale = [](const ComparedRun& run) {
    return run.is_done() && run.result->summary.staleness_max > 0;
  };
  return variant.is_synchronous.value_or(!std::ranges::any_of(variant.runs, is_stale));
}

Kind kind_of(const ComparedVariant& variant) {
  if (variant.workers < 2) return Kind::kOneWorker;
  return is_synchronous(variant) ? Kind::kSynchronous : Kind::kAsynchronous;
}

// Returns the part of the gradients that backup workers computed for updates which had enough of
// them. A worker's count lacks the steps before it was killed, so such runs do not count.
std::optional<double> dropped_gradients(const ComparedVariant& variant) {
  if (variant.label.find("+backup") == std::string::npos) return std::nullopt;
  std::int64_t computed = 0;  // samples, as all workers of a variant have equal batches
  std::int64_t used = 0;
  for (const ComparedRun& run : variant.runs) {
    if (!run.is_done() || std::ssize(run.result->times) != variant.workers) continue;
    if (std::ranges::find(run.result->faults, "--kill") != run.result->faults.end()) continue;
    used += run.result->summary.samples;
    for (const WorkerMetrics& worker : run.result->times) computed += worker.samples;
  }
  if (used == 0 || computed < used) return std::nullopt;
  return 1.0 - static_cast<double>(used) / static_cast<double>(computed);
}

VariantSummary summary_of(const ComparedVariant& variant, const std::optional<double>& target) {
  VariantSummary row;
  row.name = variant.label;
  row.label = variant.label;
  row.workers = variant.workers;
  row.kind = kind_of(variant);
  row.is_distributed = variant.is_distributed;
  count_runs(variant, row);
  row.notes = merged_notes(variant);
  row.accuracy =
      over_runs(variant, [](const RunResult& run) { return run.summary.test_metric.value; });
  row.test_loss = over_runs(variant, [](const RunResult& run) { return run.summary.test_loss; });
  row.seconds = over_runs(variant, [](const RunResult& run) { return run.summary.seconds; });
  row.samples_per_second =
      over_runs(variant, [](const RunResult& run) { return run.summary.samples_per_second; });
  row.updates = over_runs(
      variant, [](const RunResult& run) { return static_cast<double>(run.summary.steps); });
  row.samples = over_runs(
      variant, [](const RunResult& run) { return static_cast<double>(run.summary.samples); });
  row.learning_rate = sample_of(learning_rates_of(variant));
  row.dropped_gradients = dropped_gradients(variant);
  for (const ComparedRun& run : variant.runs) {
    if (run.is_done()) row.weights.push_back(run.result->summary.weights_hash);
  }
  if (!is_synchronous(variant) && has_staleness(variant)) {
    row.staleness =
        over_runs(variant, [](const RunResult& run) { return run.summary.staleness_mean; });
  }
  if (target) add_target(variant, *target, row);
  return row;
}

std::optional<double> geometric_mean(const Sample& sample) {
  double sum = 0.0;
  for (const double value : sample.values) {
    if (!(value > 0.0)) return std::nullopt;
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(sample.values.size()));
}

}  // namespace

bool VariantSummary::is_at_chance(const std::optional<Chance>& chance) const noexcept {
  return accuracy && chance && accuracy->mean <= chance->limit();
}

int VariantSummary::not_numbers() const noexcept {
  if (!accuracy) return 0;
  return static_cast<int>(
      std::ranges::count_if(accuracy->values, [](double value) { return !std::isfinite(value); }));
}

double most_disturbance(const Rows& rows) {
  double most = 0.0;
  for (const VariantSummary& row : rows) most = std::max(most, row.most_disturbance);
  return most;
}

std::optional<TargetPoint> time_to_target(const RunResult& run, double target_accuracy) {
  CurvePoint before;
  for (const CurvePoint& point : run.curve) {
    if (point.accuracy >= target_accuracy) {
      return TargetPoint{point.seconds, point.samples, point.seconds - before.seconds,
                         point.seconds + point.paused_seconds, point.samples - before.samples};
    }
    before = point;
  }
  return std::nullopt;
}

Rows summarise(const Comparison& comparison) {
  Rows rows;
  for (const ComparedVariant& variant : comparison.variants) {
    rows.push_back(summary_of(variant, comparison.target_accuracy));
    rows.back().has_comparable_times =
        comparison.has_virtual_clock || comparison.machines.size() < 2;
    const auto has_this_label = [&](const ComparedVariant& other) {
      return other.label == variant.label;
    };
    if (std::ranges::count_if(comparison.variants, has_this_label) > 1) {
      rows.back().name += ", " + count_text(variant.workers, "worker");
    }
  }
  return rows;
}

std::vector<std::size_t> choices(const Rows& rows, const std::optional<Chance>& chance) {
  std::vector<std::size_t> done;
  std::vector<std::size_t> complete;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].done == 0 || rows[i].is_at_chance(chance) || rows[i].not_numbers() > 0) continue;
    done.push_back(i);
    if (rows[i].is_complete()) complete.push_back(i);
  }
  return complete.empty() ? done : complete;
}

std::string named(const VariantSummary& row) {
  const std::string bare = row.name.substr(0, row.name.find('{'));
  const bool is_one_word = bare.find_first_of(" ,") == std::string::npos;
  return is_one_word ? row.name : fmt::format("\"{}\"", row.name);
}

std::string accuracy_of(const VariantSummary& row) {
  return decimal_text(100.0 * row.accuracy->mean, 2) + " %";
}

SpeedUpKind speed_up_kind(const Rows& rows) {
  const bool has_time = !rows.empty() && rows.front().seconds_to_target;
  return has_time ? SpeedUpKind::kTimeToTarget : SpeedUpKind::kThroughput;
}

std::optional<double> speed_up(const Rows& rows, std::size_t base, std::size_t row) {
  if (rows[base].disturbed > 0 || rows[row].disturbed > 0) return std::nullopt;
  const bool by_time = speed_up_kind(rows) == SpeedUpKind::kTimeToTarget;
  const auto quantity = [&](const VariantSummary& of) {
    return by_time ? of.seconds_to_target : of.samples_per_second;
  };
  const auto of_base = quantity(rows[base]);
  const auto of_row = quantity(rows[row]);
  if (!of_base || !of_row) return std::nullopt;
  const std::optional<double> base_mean = geometric_mean(*of_base);
  const std::optional<double> row_mean = geometric_mean(*of_row);
  if (!base_mean || !row_mean) return std::nullopt;
  return by_time ? *base_mean / *row_mean : *row_mean / *base_mean;
}

std::optional<std::size_t> fastest_with_one_worker(const Rows& rows) {
  std::optional<std::size_t> fastest;
  double most = 0.0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto factor = speed_up(rows, 0, row);
    if (rows[row].kind != Kind::kOneWorker || !factor || *factor <= most) continue;
    fastest = row;
    most = *factor;
  }
  return fastest;
}

}  // namespace syncopate::bench
