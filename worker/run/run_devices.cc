#include "worker/run/run_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/resource_limits.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/resolvers/visible_gpus.h"

namespace syncopate {
namespace {

int tasks_on_host(const ClusterSpec& task) {
  return std::max(task.local_size, task.most_local_tasks);
}

std::vector<Device> as_devices(const std::vector<int>& gpus) {
  std::vector<Device> devices;
  devices.reserve(gpus.size());
  for (const int gpu : gpus) devices.push_back({DeviceKind::kCuda, gpu});
  return devices;
}

// Returns the devices as a list such as "cuda:0, cuda:1".
std::string list_of(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const Device& device : devices) names.push_back(to_string(device));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string count_of_gpus(std::size_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

// Returns the GPUs that each task sees, indexed by task. The message of a task has its machine in
// the first line, followed by one line for each GPU.
std::vector<SeenGpus> exchange_seen(const std::vector<std::string>& bus_ids,
                                    Membership& membership) {
  std::string mine = own_boot_id();
  if (mine.empty()) mine = own_host_name();
  for (const std::string& id : bus_ids) mine += '\n' + id;
  std::vector<SeenGpus> all;
  for (const std::string& message : membership.exchange(mine)) {
    SeenGpus& seen = all.emplace_back();
    std::istringstream lines(message);
    std::getline(lines, seen.machine);
    for (std::string id; std::getline(lines, id);) seen.bus_ids.push_back(id);
  }
  return all;
}

// Returns why a GPU cannot run this build with this precision, as a line that names the GPU; empty
// if it can.
std::string why_refused(const std::vector<CudaDevice>& visible, int index,
                        const TrainOptions& options) {
  const std::string why =
      why_unusable(visible[static_cast<std::size_t>(index)], options.strategy.precision,
                   load_cuda_module().architectures());
  return why.empty() ? "" : fmt::format("cuda:{}: {}", index, why);
}

// Returns the visible GPUs that can run this build with this precision; `refused` receives why the
// first of the others cannot. Throws UnavailableError if none can.
std::vector<int> usable_gpus(const std::vector<CudaDevice>& visible, const TrainOptions& options,
                             std::string& refused) {
  std::vector<int> usable;
  for (int i = 0; std::cmp_less(i, visible.size()); ++i) {
    const std::string why = why_refused(visible, i, options);
    if (why.empty()) usable.push_back(i);
    if (refused.empty()) refused = why;
  }
  if (usable.empty() && !refused.empty()) throw UnavailableError(refused);
  return usable;
}

// Returns the GPUs of this task among those it sees. Where the environment does not name them, GPUs
// that cannot run this build are left out.
std::vector<int> own_gpus(const std::vector<CudaDevice>& visible, const TrainOptions& options) {
  const ClusterSpec& task = options.cluster;
  if (!task.gpus.empty()) return task.gpus;
  std::string refused;
  const std::vector<int> usable = usable_gpus(visible, options, refused);
  if (!refused.empty()) log(LogLevel::kInfo, "left out " + refused);
  std::vector<int> own;
  for (const int i :
       deal_out_gpus(static_cast<int>(usable.size()), task.local_rank, tasks_on_host(task))) {
    own.push_back(usable.at(static_cast<std::size_t>(i)));
  }
  return own;
}

void require_worker(const char* flag, int worker, int workers) {
  if (worker < workers) return;
  throw UsageError(
      fmt::format("{} worker={}: expected a worker from 0 to {}, as the job has {} worker{}", flag,
                  worker, workers - 1, workers, workers == 1 ? "" : "s"));
}

}  // namespace

void find_devices(TrainOptions& options) {
  std::vector<Device>& devices = options.strategy.devices;
  if (devices.front().kind == DeviceKind::kCpu) return;
  const std::vector<CudaDevice> visible = load_cuda_module().devices();
  if (options.takes_own_gpus) devices = as_devices(own_gpus(visible, options));
  for (const Device& device : devices) {
    if (std::cmp_less(device.index, visible.size())) continue;
    throw UnavailableError(
        fmt::format("--devices {}: {} visible here, from cuda:0", to_string(device),
                    visible.size() == 1 ? "1 GPU is" : fmt::format("{} GPUs are", visible.size())));
  }
  const auto used = options.takes_every_device
                        ? devices.size()
                        : static_cast<std::size_t>(options.strategy.replicas);
  for (std::size_t i = 0; i < std::min(used, devices.size()); ++i) {
    const std::string why = why_refused(visible, devices[i].index, options);
    if (!why.empty()) throw UnavailableError(why);
  }
  if (options.takes_every_device) options.strategy.replicas = static_cast<int>(devices.size());
  check_delayed_workers(options);
}

void deal_out_devices(TrainOptions& options, Membership* membership) {
  std::vector<Device>& devices = options.strategy.devices;
  std::vector<int> usable;
  std::vector<std::string> seen;
  if (options.takes_own_gpus) {
    const std::vector<CudaDevice> visible = load_cuda_module().devices();
    std::string refused;  // is in the log since find_devices()
    usable = usable_gpus(visible, options, refused);
    for (const int i : usable) seen.push_back(visible[static_cast<std::size_t>(i)].bus_id);
  }
  if (membership == nullptr) {
    if (devices.size() < seen.size() && tasks_on_host(options.cluster) > 1) {
      log(LogLevel::kInfo,
          fmt::format("the {} visible here are divided among the {} tasks of this host: this task "
                      "has {}",
                      count_of_gpus(seen.size()), tasks_on_host(options.cluster),
                      list_of(devices)));
    }
    return;
  }
  const std::vector<SeenGpus> all = exchange_seen(seen, *membership);
  if (seen.empty()) return;
  const GpuShare share = share_of_gpus(all, static_cast<std::size_t>(membership->index()));
  devices.clear();
  for (const int i : share.gpus) {
    devices.push_back({DeviceKind::kCuda, usable.at(static_cast<std::size_t>(i))});
  }
  if (share.tasks == 1) return;
  log(LogLevel::kInfo, fmt::format("{} tasks share {} of this host: this task has {}", share.tasks,
                                   count_of_gpus(seen.size()), list_of(devices)));
}

std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options) {
  const std::vector<Device>& devices = options.strategy.devices;
  if (devices.front().kind == DeviceKind::kCpu) return nullptr;
  return load_cuda_module().monitor(devices);
}

void warn_of_threads(const TrainOptions& options) {
  const CpuLimits cpus = cpu_limits();
  const StrategyOptions& strategy = options.strategy;
  if (strategy.lanes == 0 || strategy.lanes * strategy.replicas <= cpus.usable()) return;
  if (strategy.devices.front().kind != DeviceKind::kCpu || options.shares_devices) return;
  log(LogLevel::kWarning,
      fmt::format("--threads {} for {} replica{}: this process may use {}, and more threads "
                  "than CPUs train more slowly",
                  strategy.lanes, strategy.replicas, strategy.replicas == 1 ? "" : "s",
                  describe(cpus)));
}

void check_delayed_workers(const TrainOptions& options) {
  const ServiceTimeOptions& delays = options.loop.service_time;
  const int workers = options.cluster.world_size * options.strategy.replicas;
  for (const Slowness& slow : delays.slow) require_worker("--slow", slow.worker, workers);
  for (const Pause& pause : delays.pauses) require_worker("--pause", pause.worker, workers);
}

}  // namespace syncopate
