// syncopate-bench step prints the milliseconds of one training step (forward, backward, update) on
// samples in memory. A peer that trains an equal network with equal batch size, optimizer and
// number of threads may take turns with it.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/bench_commands.h"
#include "bench/harness/measure.h"
#include "bench/harness/peer.h"
#include "bench/harness/report.h"
#include "bench/harness/rounds.h"
#include "bench/step/group_profile.h"
#include "bench/step/retune.h"
#include "bench/step/step_work.h"
#include "bench/step/workload.h"
#include "bench/step/workload_data.h"
#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "models/optim/optimizer.h"
#include "models/zoo/zoo.h"
#include "worker/run/run_data.h"
#include "worker/run/run_devices.h"

namespace syncopate::bench {
namespace {

struct StepOptions {
  std::vector<std::string> models = {"mnist-cnn", "resnet20", "resnet56"};
  // If batch_size or steps_per_round is 0 or optimizer is empty, the workload's own value is used.
  std::int64_t batch_size = 0;
  std::string optimizer;
  int steps_per_round = 0;
  int rounds = 7;
  // `peer` is the command of the other side. `peer_python` is an interpreter that runs
  // bench/peers/torch_step.py, or torch_gpu_step.py for a GPU. If both are empty, there is no peer.
  std::string peer;
  std::string peer_python;
  std::string json_file;
  std::string retune_file;  // if set, only the convolution table is written, here
  bool quick = false;
  bool no_fuse = false;
  bool no_winograd = false;
  bool profile = false;
  WorkloadData data;
  TrainingOptions training;
};

// Measures each model in turn and prints one table per model. All names are checked before the
// first measurement. Throws UsageError, UnavailableError where the device is missing, PeerError,
// DivergenceError.
void run_step(StepOptions options);

using nlohmann::json;

struct Result {
  Workload workload;
  std::string device;
  Rounds rounds;
  std::string peer_settings;  // the peer's settings as JSON; empty without a peer
  std::string peer_description;
  std::string peer_warning;
  std::string precision;
  std::optional<DeviceFigures> figures;  // set for a GPU only
  // With --profile on a GPU: the groups as a table and as JSON.
  std::optional<std::pair<std::string, json>> groups;
};

std::int64_t element_bytes(const StepOptions& options) {
  return options.training.precision == Precision::kF32 ? 4 : 2;
}

Workload requested_workload(const StepOptions& options, const std::string& model) {
  Workload workload = with_data(find_workload(model), options.data);
  if (options.batch_size > 0) workload.batch_size = options.batch_size;
  if (!options.optimizer.empty()) workload.optimizer = options.optimizer;
  if (options.quick) workload.steps_per_round = std::max(2, workload.steps_per_round / 4);
  if (options.steps_per_round > 0) workload.steps_per_round = options.steps_per_round;
  return workload;
}

bool is_gpu(const StepOptions& options) {
  return options.training.device.kind == DeviceKind::kCuda;
}

// Formats without std::to_string, which would print 0.000000 for 1e-7.
std::string exact_text(double value) { return json(value).dump(); }

std::vector<std::string> peer_command(const StepOptions& options, const Workload& workload) {
  std::vector<std::string> command = split_command(options.peer);
  if (!options.peer_python.empty()) {
    command = {options.peer_python,
               peer_script(is_gpu(options) ? "torch_gpu_step.py" : "torch_step.py").string()};
    // With 16-bit precision, the peer may choose the faster of its two 16-bit types.
    if (is_gpu(options)) {
      const bool f32 = options.training.precision == Precision::kF32;
      command.insert(command.end(), {"--precision", f32 ? "f32" : "bf16,fp16"});
    }
  }
  if (command.empty()) return command;
  command.insert(command.end(),
                 {"--serve", "--model", workload.model, "--batch-size",
                  std::to_string(workload.batch_size), "--optimizer", workload.optimizer,
                  "--learning-rate", exact_text(options.training.learning_rate)});
  if (!is_gpu(options)) {
    command.insert(command.end(), {"--threads", std::to_string(options.training.lanes)});
  }
  return command;
}

// Averages the steps of a turn on a GPU: the host runs ahead of the device there, so the time of a
// single step has no meaning.
double turn_seconds(const StepOptions& options, const std::vector<double>& steps) {
  if (!is_gpu(options)) return median(steps);
  return std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
}

// Runs one turn of our side and records the load of the device.
double our_turn(const StepOptions& options, WorkloadTraining& ours, Result& result) {
  std::unique_ptr<DeviceMonitor> monitor;
  if (is_gpu(options)) monitor = load_cuda_module().monitor(std::array{options.training.device});
  const double seconds = turn_seconds(options, ours.run(result.workload.steps_per_round));
  const auto load = monitor ? monitor->load() : std::nullopt;
  if (load) {
    result.figures->busy.push_back(load->utilisation);
    result.figures->memory_bytes =
        std::max(result.figures->memory_bytes, static_cast<double>(load->memory_bytes));
  }
  return seconds;
}

std::pair<std::string, json> profile_groups(const StepOptions& options, WorkloadTraining& ours) {
  constexpr int kSteps = 5;
  std::vector<GroupTime> times = ours.time_groups(kSteps);
  std::vector<FusedGroup> groups;
  for (const GroupTime& time : times) groups.push_back(time.group);
  const std::vector<GroupBytes> bytes =
      count_group_bytes(ours.graph(), groups, ours.workload().batch_size, element_bytes(options));
  std::vector<GroupProfile> profiles;
  for (std::size_t i = 0; i < times.size(); ++i) {
    profiles.push_back({.time = std::move(times[i]), .bytes = bytes[i]});
  }
  return {describe_groups(ours.graph(), profiles), groups_json(ours.graph(), profiles)};
}

Result measure(const StepOptions& options, const Workload& workload) {
  // The peer starts first, so that a peer that cannot run is reported before any computation.
  std::unique_ptr<Peer> peer;
  if (auto command = peer_command(options, workload); !command.empty()) {
    PeerOptions peer_options{.command = std::move(command)};
    // The timeout of the peer's start: torch.compile takes minutes to tune.
    if (is_gpu(options)) peer_options.ready_timeout = std::chrono::minutes(5);
    peer = std::make_unique<Peer>(std::move(peer_options));
  }
  Result result{.workload = workload, .precision = std::string(name(options.training.precision))};
  if (is_gpu(options)) {
    result.figures = DeviceFigures{
        .ceilings =
            load_cuda_module().ceilings(options.training.device, options.training.precision),
        .work = count_work(build_graph(workload), workload.batch_size, element_bytes(options))};
  }
  WorkloadTraining ours(workload, options.training);
  result.device = ours.description();
  std::vector<Turn> turns = {[&] { return our_turn(options, ours, result); }};
  std::vector<pid_t> other_side;
  if (peer) {
    turns.emplace_back([&] { return turn_seconds(options, peer->run(workload.steps_per_round)); });
    other_side = {peer->pid()};
    result.peer_settings = peer->settings();
    result.peer_description = peer->description();
    result.peer_warning = peer->warning();
  }
  result.rounds = take_rounds(options.rounds, turns, other_side);
  if (options.profile && is_gpu(options)) {
    result.groups = profile_groups(options, ours);
  } else if (options.profile) {
    const StepParts parts = ours.profile(workload.steps_per_round);
    std::cout << workload.model << ": forward " << number_text(1e3 * parts.forward)
              << " ms, backward " << number_text(1e3 * parts.backward) << " ms, update "
              << number_text(1e3 * parts.update) << " ms\n";
  }
  return result;
}

std::vector<std::string> table_row(const Result& result) {
  const auto samples = static_cast<double>(result.workload.batch_size);
  const std::vector<double> ours = result.rounds.counted(0);
  std::vector<std::string> row = {result.workload.model, std::to_string(result.workload.batch_size),
                                  result.workload.optimizer, spread_text(spread_of(ours), 1e3),
                                  number_text(samples / median(ours))};
  if (result.rounds.sides.size() > 1) {
    const std::vector<double> theirs = result.rounds.counted(1);
    row.push_back(spread_text(spread_of(theirs), 1e3));
    row.push_back(number_text(samples / median(theirs)));
    row.push_back(spread_text(ratio_of(theirs, ours)) + " x" +
                  (is_quiet(result.rounds.foreign) ? "" : " NOT QUIET"));
  }
  return row;
}

json result_json(const Result& result) {
  const std::vector<double> ours = result.rounds.counted(0);
  json document = {{"model", result.workload.model},
                   {"batch_size", result.workload.batch_size},
                   {"optimizer", result.workload.optimizer},
                   {"steps_per_round", result.workload.steps_per_round},
                   {"device", result.device},
                   {"precision", result.precision},
                   {"step_seconds", spread_json(spread_of(ours))},
                   {"step_seconds_per_round", result.rounds.sides[0]}};
  document.update(conditions_json(result.rounds));
  if (result.figures) document["gpu"] = figures_json(*result.figures, median(ours));
  if (result.groups) document["groups"] = result.groups->second;
  if (result.rounds.sides.size() > 1) {
    const std::vector<double> theirs = result.rounds.counted(1);
    document["peer"] = json::parse(result.peer_settings);
    document["peer_step_seconds"] = spread_json(spread_of(theirs));
    document["peer_step_seconds_per_round"] = result.rounds.sides[1];
    document["ratio"] = spread_json(ratio_of(theirs, ours));
  }
  return document;
}

void print_result(const Result& result) {
  if (result.workload.data) {
    std::cout << describe_data(*result.workload.data, result.workload.data_flag) << '\n';
  }
  std::vector<std::string> heading = {"model", "batch", "optimizer", "ours ms [min-max]",
                                      "samples/s"};
  if (result.rounds.sides.size() > 1) {
    heading.insert(heading.end(), {"peer ms [min-max]", "samples/s", "ratio [min-max]"});
  }
  std::cout << format_table({heading, table_row(result)}) << "ours: " << result.device << '\n';
  if (result.figures) {
    std::cout << "GPU:  " << describe(*result.figures, median(result.rounds.counted(0))) << '\n';
  }
  if (result.groups) std::cout << result.groups->first;
  if (!result.peer_description.empty()) std::cout << "peer: " << result.peer_description << '\n';
  if (!result.peer_warning.empty()) std::cout << "WARNING: " << result.peer_warning << '\n';
  std::cout << describe_conditions(result.rounds) << std::endl;
}

void run_step(StepOptions options) {
  require_writable(options.json_file);
  if (is_gpu(options) && (options.no_fuse || options.no_winograd || !options.retune_file.empty())) {
    throw UsageError(
        "--devices cuda: --no-fuse, --no-winograd and --retune are about the CPU's arithmetic; "
        "leave them out");
  }
  if (options.quick) options.rounds = std::min(options.rounds, 3);
  options.training.fuse = !options.no_fuse;
  options.training.winograd = !options.no_winograd;
  std::vector<Workload> workloads;  // all names are checked before the first measurement
  for (const std::string& model : options.models)
    workloads.push_back(requested_workload(options, model));
  if (!options.retune_file.empty()) {
    std::vector<Graph> graphs;
    graphs.reserve(workloads.size());
    for (const Workload& workload : workloads) graphs.push_back(build_graph(workload));
    return retune(graphs, options.retune_file);
  }
  json document = json::array();
  for (const Workload& workload : workloads) {
    const Result result = measure(options, workload);
    print_result(result);
    document.push_back(result_json(result));
  }
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
}

}  // namespace

Command declare_step(FlagSet& flags, const Environment& environment) {
  const auto options = std::make_shared<StepOptions>();
  options->training.lanes = usable_cpu_count();
  flags.add("--model", &options->models, "networks to measure",
            {.choices = workload_models_and_files(), .separator = ','});
  flags.add("--batch-size", &options->batch_size, "number of samples per step",
            {.default_text = "each network's usual batch size", .least = 1, .most = kMostCount});
  flags.add("--optimizer", &options->optimizer, "update rule",
            {.default_text = "each network's usual optimizer", .choices = names_of(optimizers())});
  flags.add(
      "--threads", &options->training.lanes,
      "number of compute threads (equal for syncopate and the program of --peer or --peer-python)",
      {.least = 1, .most = kMostCount});
  flags.add("--learning-rate", &options->training.learning_rate,
            "learning rate (equal for syncopate and the program of --peer or --peer-python)",
            {.least = 1e-9, .most = 1e3});
  flags.add("--rounds", &options->rounds,
            "number of rounds; each round measures syncopate, then the program of --peer or "
            "--peer-python",
            {.least = 1, .most = kMostCount});
  flags.add(
      "--steps-per-round", &options->steps_per_round,
      "number of steps per round (equal for syncopate and the program of --peer or --peer-python)",
      {.default_text = "a number that takes about a second on a few cores",
       .least = 1,
       .most = kMostCount});
  flags.add("--peer", &options->peer,
            "program to measure for comparison, as a command with its arguments",
            {.value = "COMMAND", .default_text = "none", .excludes = {"--data"}});
  flags.add("--peer-python", &options->peer_python,
            "Python interpreter that has PyTorch. With this flag, PyTorch is measured for "
            "comparison, by the script bench/peers/torch_step.py (on a GPU: torch_gpu_step.py)",
            {.value = "FILE", .default_text = "none", .excludes = {"--peer", "--data"}});
  add_workload_data_flags(flags, options->data, environment);
  flags.add("--json", &options->json_file, "JSON file for the results of every round",
            {.value = "FILE"});
  flags.add("--retune", &options->retune_file,
            "do not run the benchmark; instead measure convolution algorithms and write a new "
            "version of the table models/backend/cpu/algorithm_rows.inc to FILE",
            {.value = "FILE"});
  flags.add("--quick", &options->quick,
            "run at most 3 short rounds, only to check that the benchmark works");
  flags.add("--no-winograd", &options->no_winograd,
            "compute all convolutions by the direct algorithm, none by Winograd");
  flags.add("--no-fuse", &options->no_fuse, "do not fuse operations");
  flags.add("--profile", &options->profile,
            "also print the times of parts of a step (on a CPU: forward pass, backward pass and "
            "update; on a GPU: each group of fused operations)");
  const auto run = std::make_shared<TrainOptions>();
  run->cache_dir = default_cache_dir(environment);
  add_flags_of_train(flags, *run, {"--devices", "--precision"});
  return [options, run] {
    TrainOptions found = *run;
    complete_devices(found);
    if (found.strategy.devices.size() > 1 && !found.takes_own_gpus) {
      throw UsageError(fmt::format("--devices {}: a step is measured on one device",
                                   text_of(found, "--devices")));
    }
    find_devices(found);
    options->training.device = found.strategy.devices.front();
    options->training.precision = found.strategy.precision;
    options->training.plan_file = found.strategy.plan_file;
    run_step(*options);
  };
}

}  // namespace syncopate::bench
