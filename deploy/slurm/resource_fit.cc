#include "deploy/slurm/resource_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "deploy/slurm/gpu_request.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr int kScriptsCpus = 2;  // CPUs per task in the job scripts

// Returns the number of parts of a task that train at the same time: replicas, or the stages of a
// pipeline in one process.
int parts_of_task(const TrainOptions& train, const SbatchOptions& options) {
  const bool is_one_process = options.script == "one_node";
  if (train.takes_every_device) {
    return train.takes_own_gpus ? std::max(1, requested_gpus(options).of_node(1, 1))
                                : static_cast<int>(train.strategy.devices.size());
  }
  return has_stages(train) && is_one_process ? train.strategy.stages : train.strategy.replicas;
}

// Returns the GPUs that a task trains on: one for each part, but no more than it has.
int gpus_of_task(const TrainOptions& train, const SbatchOptions& options) {
  int gpus = parts_of_task(train, options);
  if (!train.takes_own_gpus) gpus = std::min<int>(gpus, std::ssize(train.strategy.devices));
  const GpuRequest request = requested_gpus(options);
  if (request.is_empty()) return gpus;
  const int tasks = tasks_on_node(options);
  return std::clamp(request.of_node(nodes_of(options), tasks) / tasks, 1, gpus);
}

// Returns what to type so that a task or more use all GPUs of a node. `parts`: of each task.
std::string cure_of_idle_gpus(const TrainOptions& train, const SbatchOptions& options,
                              bool lists_gpus, int of_node, int parts) {
  const std::string devices = train.takes_own_gpus ? "" : "--devices cuda ";
  if (options.script == "one_node") {
    if (!has_stages(train)) {
      return fmt::format(
          "give {}--replicas {} behind --, with --strategy mirrored or central-storage", devices,
          of_node);
    }
    return fmt::format("give {}--stages {} behind --{}", devices, of_node,
                       train.strategy.cut.empty() ? "" : " in place of --cut");
  }
  const bool divides = !lists_gpus && of_node % parts == 0;
  const int of_task = divides ? parts : 1;
  std::string cure =
      requested_gpus(options).per_task > of_task
          ? fmt::format("give --gpus-per-task {} --tasks-per-node {}", of_task, of_node / of_task)
          : fmt::format("give --tasks-per-node {}", of_node / of_task);
  if (!divides) cure += fmt::format(" and {}behind --", lists_gpus ? devices : "--replicas 1 ");
  return cure;
}

}  // namespace

void fit_tasks(const TrainOptions& train, SbatchOptions& options) {
  const GpuRequest gpus = requested_gpus(options);
  if (gpus.is_empty()) return;
  if (train.strategy.devices.front().kind != DeviceKind::kCuda) {
    options.notes.emplace_back(
        "the job requests GPUs and trains on CPUs; give --devices cuda behind --");
    return;
  }
  const int parts = parts_of_task(train, options);
  // All tasks of a node train on the listed GPUs, unless Slurm gives each task its own.
  const bool lists_gpus = !train.takes_own_gpus && gpus.per_task == 0;
  const int nodes = nodes_of(options);
  if (options.script != "one_node" && options.tasks_per_node == 0 && gpus.per_task == 0 &&
      !lists_gpus) {
    options.tasks_per_node = std::clamp(gpus.of_node(nodes, 1) / parts, 1, kMostJobTasks);
  }
  const int tasks = tasks_on_node(options);
  const int of_node = gpus.of_node(nodes, tasks);
  const int used =
      lists_gpus ? std::min<int>(parts, std::ssize(train.strategy.devices)) : tasks * parts;
  if (used >= of_node) return;
  options.notes.push_back(
      fmt::format("{} of the {} GPUs of a node stay idle, because --strategy {} uses {}; {}",
                  of_node - used, of_node, options.strategy, used,
                  cure_of_idle_gpus(train, options, lists_gpus, of_node, parts)));
}

void fit_cpus(const TrainOptions& train, SbatchOptions& options) {
  // Looks for --share-devices in the user's flags, not in `train`: parse_sbatch() always adds the
  // flag there, so that the CPUs of this machine are not counted.
  const bool shares = std::ranges::count(options.train_flags, "--share-devices") > 0;
  const char* const parts = has_stages(train) ? "stages" : "replicas";
  const int count = parts_of_task(train, options);
  const bool is_on_gpus = train.strategy.devices.front().kind == DeviceKind::kCuda;
  if (shares) return;
  // run_sbatch() asks Slurm how many CPUs belong to these GPUs.
  if (options.cpus_per_task == 0 && is_on_gpus)
    options.gpus_per_task = gpus_of_task(train, options);
  if (options.cpus_per_task == 0) {
    const int wanted = count * std::max(1, train.strategy.lanes);
    if (wanted > kScriptsCpus) options.cpus_per_task = wanted;
  } else if (options.cpus_per_task < count && !is_on_gpus) {
    throw UsageError(
        fmt::format("--cpus-per-task {} for --{} {}: {} that share a CPU wait for each other; give "
                    "one to each, or --share-devices behind -- if that is meant",
                    options.cpus_per_task, parts, count, parts));
  }
}

void fit_gpus(const TrainOptions& train, SbatchOptions& options) {
  const std::vector<Device>& devices = train.strategy.devices;
  if (devices.front().kind != DeviceKind::kCuda || !requested_gpus(options).is_empty()) return;
  int gpus = parts_of_task(train, options);
  if (train.takes_own_gpus) {
    gpus *= tasks_on_node(options);
  } else {
    for (const Device& device : devices) gpus = std::max(gpus, device.index + 1);
  }
  const auto gres =
      std::ranges::find(options.resources, "gres", &std::pair<std::string, std::string>::first);
  if (gres == options.resources.end()) {
    options.resources.emplace_back("gres", fmt::format("gpu:{}", gpus));
  } else {
    gres->second += fmt::format(",gpu:{}", gpus);
  }
}

}  // namespace syncopate
