#include "bench/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/harness/bench_commands.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/scaling/scaling_sides.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "models/zoo/zoo.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

std::optional<std::size_t> find_peer(const ScalingResult& result) {
  if (result.entries.back().ours) return std::nullopt;
  return result.entries.size() - 1;
}

std::vector<std::string> table_row(const ScalingResult& result, std::size_t i) {
  const ScalingEntry& entry = result.entries[i];
  const std::vector<double> rate = result.rounds.counted(i);
  const Spread exposed = spread_of_turns(result, i, &ScalingTurn::exposed_seconds);
  const double step_seconds = spread_of_turns(result, i, &ScalingTurn::step_seconds).median;
  const bool has_sums = entry.ours && entry.replicas > 1;
  const std::optional<std::size_t> peer = find_peer(result);
  const std::string quiet = is_quiet(result.rounds.foreign) ? "" : " NOT QUIET";
  return {entry.name,
          fmt::format("{} x {}", entry.replicas, entry.lanes),
          std::to_string(entry.batch_size),
          spread_text(spread_of(rate)),
          spread_text(ratio_of(rate, result.rounds.counted(0)), 100.0) + "%",
          has_sums ? spread_text(exposed, 1e3) : "-",
          has_sums ? number_text(100.0 * exposed.median / step_seconds) + "%" : "-",
          peer && entry.ours
              ? spread_text(ratio_of(rate, result.rounds.counted(*peer))) + " x" + quiet
              : "-"};
}

void print_result(const ScalingResult& result) {
  std::vector<std::vector<std::string>> table = {
      {result.workload.model, "replicas x threads", "batch", "samples/s [min-max]",
       "of the first [min-max]", "exposed ms/step", "of a step", "ours / DDP [min-max]"}};
  for (std::size_t i = 0; i < result.entries.size(); ++i) table.push_back(table_row(result, i));
  std::cout << format_table(table);
  for (const ScalingEntry& entry : result.entries) {
    std::cout << entry.name << ": " << entry.side->description() << '\n';
  }
  std::cout << describe_conditions(result.rounds) << std::endl;
}

json result_json(const ScalingResult& result) {
  json document = {{"model", result.workload.model},
                   {"data", result.workload.data_flag},
                   {"optimizer", result.workload.optimizer},
                   {"sides", json::array()}};
  document.update(conditions_json(result.rounds));
  const std::optional<std::size_t> peer = find_peer(result);
  for (std::size_t i = 0; i < result.entries.size(); ++i) {
    const ScalingEntry& entry = result.entries[i];
    const std::vector<double> rate = result.rounds.counted(i);
    json side = {
        {"name", entry.name},
        {"replicas", entry.replicas},
        {"threads_per_replica", entry.lanes},
        {"batch_size", entry.batch_size},
        {"description", entry.side->description()},
        {"samples_per_second", spread_json(spread_of(rate))},
        {"samples_per_second_per_round", result.rounds.sides[i]},
        {"of_the_first", spread_json(ratio_of(rate, result.rounds.counted(0)))},
        {"step_seconds", spread_json(spread_of_turns(result, i, &ScalingTurn::step_seconds))}};
    if (entry.ours) {
      side["exposed_seconds_per_step"] =
          spread_json(spread_of_turns(result, i, &ScalingTurn::exposed_seconds));
      side["communication_seconds_per_step"] =
          spread_json(spread_of_turns(result, i, &ScalingTurn::communication_seconds));
      if (peer) side["ratio_to_ddp"] = spread_json(ratio_of(rate, result.rounds.counted(*peer)));
    }
    document["sides"].push_back(side);
  }
  return document;
}

}  // namespace

int lanes_per_replica(int threads_total, int replicas) {
  if (replicas < 1 || threads_total % replicas != 0) {
    throw UsageError(fmt::format(
        "--threads-total {}: cannot be dealt out evenly to {} replicas (--replicas); choose a "
        "multiple",
        threads_total, replicas));
  }
  return threads_total / replicas;
}

std::int64_t batch_per_replica(const ScalingOptions& options, std::int64_t usual, int replicas) {
  if (options.batch_size == 0) {
    return options.batch_size_per_replica > 0 ? options.batch_size_per_replica : usual;
  }
  if (options.batch_size % replicas != 0) {
    throw UsageError(
        fmt::format("--batch-size {}: cannot be dealt out evenly to {} replicas; choose a multiple",
                    options.batch_size, replicas));
  }
  return options.batch_size / replicas;
}

std::vector<Workload> workloads_of(const ScalingOptions& options) {
  std::vector<Workload> workloads;  // all names are checked before the data are opened
  for (const std::string& model : options.models) workloads.push_back(find_workload(model));
  for (Workload& workload : workloads) workload = with_data(workload, options.data);
  if (workloads.front().data) {
    std::cout << describe_data(*workloads.front().data, options.data.flag) << std::endl;
  }
  return workloads;
}

void run_scaling(ScalingOptions options) {
  require_writable(options.json_file);
  if (options.quick) options.rounds = std::min(options.rounds, 3);
  if (options.replicas.empty() || options.strategies.empty() || options.models.empty()) {
    throw UsageError("--replicas, --strategy and --model: at least one each");
  }
  if (options.grid) return run_scaling_grid(options);
  const std::vector<Workload> workloads = workloads_of(options);
  for (const int replicas : options.replicas) {
    lanes_per_replica(options.threads_total, replicas);
    batch_per_replica(options, 1, replicas);
  }
  json document = json::array();
  for (const Workload& workload : workloads) {
    const ScalingResult result =
        measure_scaling(options, workload, make_scaling_entries(options, workload));
    print_result(result);
    document.push_back(result_json(result));
  }
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
}

Command declare_scaling(FlagSet& flags, const Environment& environment) {
  const auto options = std::make_shared<ScalingOptions>();
  options->threads_total = usable_cpu_count();
  flags.add("--model", &options->models, "networks to measure",
            {.choices = workload_models_and_files(), .separator = ','});
  flags.add("--replicas", &options->replicas,
            "numbers of replicas to measure; speeds are printed relative to the speed with the "
            "first of these numbers",
            {.least = 1, .most = kMostCount, .separator = ','});
  flags.add("--strategy", &options->strategies,
            "strategies for two or more replicas (mirrored: all replicas in one process; "
            "multi-worker-mirrored: one process per replica)",
            {.choices = {kMirrored, kMultiWorkerMirrored}, .separator = ','});
  flags.add("--threads-total", &options->threads_total,
            "total number of compute threads, divided equally among the replicas",
            {.least = 1, .most = kMostCount});
  flags.add("--batch-size-per-replica", &options->batch_size_per_replica,
            "number of samples per replica and step",
            {.default_text = "each network's usual batch size", .least = 1, .most = kMostCount});
  flags.add(
      "--batch-size", &options->batch_size,
      "number of samples per step of all replicas together; replaces --batch-size-per-replica",
      {.default_text = "--batch-size-per-replica times the number of replicas",
       .least = 1,
       .most = kMostCount,
       .excludes = {"--batch-size-per-replica"}});
  flags.add("--peer-ddp", &options->peer_ddp,
            "also measure PyTorch DDP. COMMAND is a Python interpreter that has PyTorch, or "
            "another command with its arguments that runs DDP",
            {.value = "COMMAND", .default_text = "none", .excludes = {"--data"}});
  add_workload_data_flags(flags, options->data, environment);
  flags.add("--rounds", &options->rounds,
            "number of rounds; each round measures every combination of a strategy and a number of "
            "replicas once",
            {.least = 1, .most = kMostCount});
  flags.add("--steps-per-round", &options->steps_per_round,
            "number of steps of each combination in a round",
            {.default_text = "a number that takes about a second on a few cores",
             .least = 1,
             .most = kMostCount});
  flags.add("--json", &options->json_file, "JSON file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick,
            "run at most 3 short rounds, only to check that the benchmark works");
  const auto words = std::make_shared<std::vector<std::string>>();
  flags.add(
      "--grid", words.get(),
      "measure every combination of the listed numbers of threads per replica with the listed "
      "numbers of replicas. Speeds are relative to the combination with the fewest threads and "
      "replicas. A combination may use more threads than there are CPUs",
      {.value = "threads=N,... replicas=N,...",
       .excludes = {"--replicas", "--threads-total", "--peer-ddp"},
       .several_words = true});
  flags.add("--report", &options->report,
            "folder for the page scaling.html, with the table and plots of --grid",
            {.value = "DIR", .default_text = "none", .needs = "--grid"});
  return [options, words] {
    if (!words->empty()) options->grid = parse_scaling_grid(*words);
    options->command = command_line();
    run_scaling(*options);
  };
}

}  // namespace syncopate::bench
