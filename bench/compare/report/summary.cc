#include "bench/compare/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <ranges>

#include "bench/compare/report/machine.h"
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
  for (const RunResult* const run : variant.results()) values.push_back(quantity(*run));
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
  const std::vector<const RunResult*> runs = variant.results();
  for (const RunResult* const run : runs) {
    for (const std::string& note : run->notes) {
      if (std::ranges::find(texts, note) == texts.end()) texts.push_back(note);
    }
  }
  for (std::string& text : texts) {
    std::string seeds;
    bool is_on_all = true;
    for (const RunResult* const run : runs) {
      if (std::ranges::find(run->notes, text) == run->notes.end()) {
        is_on_all = false;
      } else {
        seeds += fmt::format("{}{}", seeds.empty() ? "" : ", ", run->seed);
      }
    }
    if (!is_on_all) text = fmt::format("seed {}: {}", seeds, text);
  }
  return texts;
}

void add_target(const ComparedVariant& variant, double target, VariantSummary& row) {
  std::vector<double> samples;
  for (const RunResult* const run : variant.results()) {
    const auto point = time_to_target(*run, target);
    if (!point) {
      if (!run->curve.empty()) row.missed_seconds.push_back(run->curve.back().seconds);
      continue;
    }
    row.reached_seconds.push_back(point->seconds);
    row.reached_gaps.push_back(point->gap_seconds);
    samples.push_back(static_cast<double>(point->samples));
  }
  row.reached = static_cast<int>(samples.size());
  if (row.reached < row.ended()) return;
  row.seconds_to_target = sample_of(row.reached_seconds);
  row.samples_to_target = sample_of(std::move(samples));
}

// Runs without servers have no histograms of staleness.
bool has_staleness(const ComparedVariant& variant) {
  return std::ranges::any_of(variant.results(),
                             [](const auto* run) { return !run->summary.staleness.empty(); });
}

Kind kind_of(const ComparedVariant& variant) {
  if (variant.workers < 2) return Kind::kOneWorker;
  return variant.is_synchronous ? Kind::kSynchronous : Kind::kAsynchronous;
}

// Returns the part of the gradients that were computed and then dropped. A worker's count lacks the
// steps before it was killed, so such runs do not count.
std::optional<double> dropped_gradients(const ComparedVariant& variant) {
  if (variant.drops.empty()) return std::nullopt;
  std::int64_t computed = 0;  // samples, as all workers of a variant have equal batches
  std::int64_t used = 0;
  for (const RunResult* const run : variant.results()) {
    if (std::ssize(run->times) != variant.workers) continue;
    if (std::ranges::find(run->faults, "--kill") != run->faults.end()) continue;
    used += run->summary.samples;
    for (const WorkerMetrics& worker : run->times) computed += worker.samples;
  }
  if (used == 0 || computed < used) return std::nullopt;
  return 1.0 - static_cast<double>(used) / static_cast<double>(computed);
}

// Returns the mean accuracy of the evaluations from `begin` to before `end`.
double mean_accuracy(const std::vector<CurvePoint>& curve, std::size_t begin, std::size_t end) {
  double sum = 0.0;
  for (std::size_t i = begin; i < end; ++i) sum += curve[i].accuracy;
  return sum / static_cast<double>(end - begin);
}

bool is_still_learning(const ComparedVariant& variant) {
  constexpr std::size_t kFewest = 5;  // evaluations
  constexpr double kRise = 0.005;
  std::vector<double> rises;
  for (const RunResult* const run : variant.results()) {
    const std::vector<CurvePoint>& curve = run->curve;
    if (curve.size() < kFewest) continue;
    const std::size_t fifth = curve.size() / 5;
    const std::size_t middle = curve.size() - fifth;
    rises.push_back(mean_accuracy(curve, middle, curve.size()) -
                    mean_accuracy(curve, middle - fifth, middle));
  }
  if (rises.size() < 2) return false;
  const double error = *standard_deviation(rises) / std::sqrt(static_cast<double>(rises.size()));
  return mean(rises) > std::max(kRise, 2.0 * error);
}

// Returns VariantSummary::better_rate.
std::optional<double> better_rate(const ComparedVariant& variant, const VariantSummary& row) {
  // Rates were tried in factors of 2, so the largest stable rate is this much larger on average.
  constexpr double kTolerance = std::numbers::sqrt2;
  if (!variant.stable_rate || !variant.learning_rate) return std::nullopt;
  const double staleness = row.staleness ? row.staleness->mean : variant.workers - 1.0;
  const double amplification = (1.0 + staleness) / (1.0 - variant.momentum);
  const double rate = *variant.learning_rate * variant.learning_rate_factor.value_or(1.0);
  if (rate * amplification <= kTolerance * *variant.stable_rate) return std::nullopt;
  return *variant.stable_rate / amplification;
}

VariantSummary summary_of(const ComparedVariant& variant, const Comparison& comparison) {
  VariantSummary row;
  row.name = variant.label;
  row.workers = variant.workers;
  row.kind = kind_of(variant);
  row.resources = resources_of(comparison, variant);
  count_runs(variant, row);
  row.notes = merged_notes(variant);
  const auto of_summaries = [&](auto Summary::*quantity) {
    return over_runs(
        variant, [&](const RunResult& run) { return static_cast<double>(run.summary.*quantity); });
  };
  const std::string_view split = comparison.watched_split();
  row.accuracy =
      over_runs(variant, [&](const RunResult& run) { return final_accuracy(run, split); });
  row.seconds = of_summaries(&Summary::seconds);
  row.samples_per_second = of_summaries(&Summary::samples_per_second);
  row.updates = of_summaries(&Summary::steps);
  row.samples = of_summaries(&Summary::samples);
  row.dropped_gradients = dropped_gradients(variant);
  row.is_still_learning = is_still_learning(variant);
  for (const RunResult* const run : variant.results()) {
    row.weights.push_back(run->summary.weights_hash);
  }
  if (!variant.is_synchronous && has_staleness(variant)) {
    row.staleness = of_summaries(&Summary::staleness_mean);
  }
  row.better_rate = better_rate(variant, row);
  if (comparison.target_accuracy) add_target(variant, *comparison.target_accuracy, row);
  return row;
}

// Whether two rows are one: only their names differ.
bool are_equal(const VariantSummary& a, const VariantSummary& b) {
  return have_same_weights(a, b) && a.seconds->values == b.seconds->values &&
         a.reached_seconds == b.reached_seconds && a.failed + a.pending == 0 &&
         b.failed + b.pending == 0;
}

}  // namespace

Resources resources_of(const Comparison& comparison, const ComparedVariant& variant) {
  const int threads = variant.threads_per_worker.value_or(comparison.threads_per_worker);
  return {.processes = variant.is_distributed ? variant.workers + variant.servers : 1,
          .cpus = variant.workers * std::max(1, threads) + variant.servers};
}

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

bool have_same_weights(const VariantSummary& a, const VariantSummary& b) {
  const auto is_known = [](const std::string& hash) { return !hash.empty(); };
  return !a.weights.empty() && a.weights == b.weights && std::ranges::all_of(a.weights, is_known);
}

Comparison with_lasting_target(const Comparison& comparison) {
  Comparison lasting = comparison;
  if (!comparison.target_accuracy) return lasting;
  const double target = *comparison.target_accuracy;
  for (ComparedVariant& variant : lasting.variants) {
    for (ComparedRun& run : variant.runs) {
      if (!run.result) continue;
      bool lasts = true;
      for (CurvePoint& point : run.result->curve | std::views::reverse) {
        lasts = lasts && point.accuracy >= target;
        if (!lasts) point.accuracy = std::min(point.accuracy, std::nextafter(target, 0.0));
      }
    }
  }
  return lasting;
}

std::optional<TargetPoint> time_to_target(const RunResult& run, double target_accuracy) {
  const std::vector<CurvePoint>& curve = run.curve;
  const auto is_there = [&](std::size_t i) { return curve[i].accuracy >= target_accuracy; };
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const bool is_last = i + 1 == curve.size();
    const bool lasts = is_last || is_there(i + 1) || (i + 2 < curve.size() && is_there(i + 2));
    if (!is_there(i) || !lasts) continue;
    const CurvePoint before = i > 0 ? curve[i - 1] : CurvePoint{};
    return TargetPoint{curve[i].seconds, curve[i].samples, curve[i].seconds - before.seconds,
                       curve[i].seconds + curve[i].paused_seconds};
  }
  return std::nullopt;
}

double last_accuracy(const RunResult& run) {
  constexpr double kBefore = 0.9;  // of the samples
  const double end = kBefore * static_cast<double>(run.curve.back().samples);
  const auto first = std::ranges::find_if(
      run.curve, [&](const CurvePoint& point) { return static_cast<double>(point.samples) > end; });
  const auto begin = std::min(first, run.curve.end() - 1) - run.curve.begin();
  return mean_accuracy(run.curve, static_cast<std::size_t>(begin), run.curve.size());
}

bool fell_below_again(const RunResult& run, double target_accuracy) {
  const auto is_below = [&](const CurvePoint& point) { return point.accuracy < target_accuracy; };
  const auto first = std::ranges::find_if_not(run.curve, is_below);
  return std::any_of(first, run.curve.end(), is_below);
}

double final_accuracy(const RunResult& run, std::string_view watched_split) {
  if (run.curve.empty() || watched_split != "test") return run.summary.test.metric.value;
  return last_accuracy(run);
}

Rows summarise(const Comparison& comparison) {
  Rows rows;
  for (const ComparedVariant& variant : comparison.variants) {
    VariantSummary row = summary_of(variant, comparison);
    row.has_comparable_times = comparison.has_virtual_clock || count_machines(comparison) < 2;
    const auto equal =
        std::ranges::find_if(rows, [&](const auto& other) { return are_equal(other, row); });
    if (equal != rows.end()) row.same_as = static_cast<std::size_t>(equal - rows.begin());
    if (std::ranges::count(comparison.variants, variant.label, &ComparedVariant::label) > 1) {
      row.name += ", " + count_text(variant.workers, "worker");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<const VariantSummary*> judged_rows(const Rows& rows) {
  std::vector<const VariantSummary*> judged;
  for (const VariantSummary& row : rows) {
    if (!row.is_left_out()) judged.push_back(&row);
  }
  return judged;
}

std::string named(const VariantSummary& row) {
  const std::string bare = row.name.substr(0, row.name.find('{'));
  const bool is_one_word = bare.find_first_of(" ,") == std::string::npos;
  return is_one_word ? row.name : fmt::format("\"{}\"", row.name);
}

}  // namespace syncopate::bench
