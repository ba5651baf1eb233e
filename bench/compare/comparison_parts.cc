#include "bench/compare/comparison_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "bench/compare/map_file.h"
#include "bench/compare/measured_step.h"
#include "bench/compare/run_plan.h"
#include "bench/compare/virtual_run.h"
#include "models/base/errors.h"
#include "strategies/pipeline/stages.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

constexpr const char* kMapBase = "map";  // of the folders without --report

// Throws UsageError if the network does not fit the data, or cannot be cut into the stages.
void check_network(const RunSpec& run, const DataSplits& data) {
  const TrainOptions& train = run.train;
  const Graph graph =
      network_for_data(train.model, train.data, data, train.network, train.label_smoothing);
  if (!run.variant.has_stages()) return;
  (void)choose_stages(graph, run.variant.workers, train.strategy.cut,
                      fmt::format("{} with --workers {}", run.variant.label, run.variant.workers));
}

// Returns the runs of the comparison, with the predicted times of their messages.
std::vector<RunSpec> runs_of(const CompareOptions& options, const DataSplits& data) {
  CompareOptions up_to_last = options;
  up_to_last.seeds = options.first_seed + options.seeds - 1;
  std::vector<RunSpec> runs = plan_runs(up_to_last, data.train->size());
  std::erase_if(runs, [&](const RunSpec& run) {
    return run.seed < static_cast<std::uint64_t>(options.first_seed);
  });
  const bool are_all_refused =
      std::ranges::none_of(runs, [](const RunSpec& run) { return run.refusal.empty(); });
  if (are_all_refused) throw UsageError(runs.front().refusal);
  // What does not fit would fail in every run, one after the other.
  bool is_first = true;
  for (const RunSpec& run : runs) {
    const bool is_first_seed = run.seed == static_cast<std::uint64_t>(options.first_seed);
    // The data of such a variant are opened by its runs.
    if (!run.refusal.empty() || !is_first_seed || has_own_data(run.variant)) continue;
    if (is_first || run.variant.has_stages()) check_network(run, data);
    is_first = false;
  }
  for (RunSpec& run : runs) {
    if (has_own_data(run.variant)) continue;
    run.predicted_communication_seconds = predict_communication(run, data);
  }
  return runs;
}

// Returns the measured step time that the folder of a map has; empty if it has none.
std::optional<double> measured_step_in(const std::filesystem::path& dir) {
  const std::optional<StepTime> step = step_time_in(dir);
  return step && step->is_measured ? std::optional(step->milliseconds) : std::nullopt;
}

// Whether the map in the folder goes on with these options.
bool goes_on_in(const std::filesystem::path& dir, const std::vector<PlannedFolder>& planned) {
  return std::ranges::all_of(planned, [&](const PlannedFolder& folder) {
    return conflict_in(dir / folder.name, folder.runs).empty();
  });
}

}  // namespace

DataSplits open_classes(const CompareOptions& options) {
  DataSplits data =
      open_dataset(options.data_here(), data_options(options.shared, options.cache_dir));
  require_classes("compare", options.data, data);
  return data;
}

std::vector<ComparisonPart> parts_of(const CompareOptions& options, const DataSplits& data,
                                     const DataFacts& facts) {
  std::vector<ComparisonPart> parts;
  const auto add = [&](const Cluster& cluster) {
    ComparisonPart& part = parts.emplace_back();
    part.options = options;
    part.options.cluster = cluster;
    part.runs = runs_of(part.options, data);
    part.heads = planned_heads(part.options, part.runs, facts);
  };
  for (const Cluster& cluster : options.clusters) add(cluster);
  if (options.clusters.empty()) add(options.cluster);
  return parts;
}

std::vector<PlannedFolder> folders_of(const std::vector<ComparisonPart>& parts) {
  std::vector<PlannedFolder> folders;
  for (const ComparisonPart& part : parts)
    folders.push_back({part.options.cluster.name, part.heads});
  return folders;
}

std::vector<TrainOptions> options_on_shared_data(const std::vector<RunSpec>& runs) {
  std::vector<TrainOptions> options;
  for (const RunSpec& run : runs) {
    if (run.refusal.empty() && !has_own_data(run.variant)) options.push_back(run.train);
  }
  return options;
}

std::filesystem::path report_folder(const CompareOptions& options,
                                    const std::vector<ComparisonPart>& parts) {
  if (!options.report.empty()) return options.report;
  return numbered_folder(options.clusters.empty() ? "comparison" : kMapBase, folders_of(parts));
}

CompareOptions with_step_time(CompareOptions options, const DataSplits& data,
                              const DataFacts& facts) {
  if (options.clusters.empty() || !options.step_time.is_measured) return options;
  const auto planned = [&](double milliseconds) {
    set_step_time(options, milliseconds);
    return folders_of(parts_of(options, data, facts));
  };
  std::filesystem::path folder = options.report;
  if (folder.empty()) {
    folder = numbered_folder(kMapBase, [&](const std::filesystem::path& dir) {
      return planned(measured_step_in(dir).value_or(1.0));
    });
  }
  const std::optional<double> kept = measured_step_in(folder);
  const bool is_replaced = kept && options.replace && !goes_on_in(folder, planned(*kept));
  set_step_time(options, kept && !is_replaced ? *kept : measure_step_time(options, data));
  return options;
}

}  // namespace syncopate::bench
