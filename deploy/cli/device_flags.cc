#include "deploy/cli/device_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "deploy/cli/fault_flags.h"
#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/lower_case.h"
#include "models/base/resource_limits.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/resolvers/visible_gpus.h"

namespace syncopate {
namespace {

constexpr int kMostDevices = 1024;

// Returns the devices that a list in another program's words probably means: "cuda:0,cuda:1" for
// "gpu:0,1" and for TensorFlow's "/GPU:0,/GPU:1"; "" if the list has a word of another kind.
std::string meant_devices(const std::string& all) {
  std::string meant;
  std::istringstream words(lower_case(all));
  for (std::string word; std::getline(words, word, ',');) {
    for (const std::string_view prefix : {"/", "device:", "cuda", "gpu", ":"}) {
      if (word.starts_with(prefix)) word.erase(0, prefix.size());
    }
    if (word.starts_with("cpu")) return "cpu";
    const bool is_number = word.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || (word.empty() && all.find(',') != std::string::npos)) return "";
    meant += (meant.empty() ? "" : ",") + (word.empty() ? "cuda" : "cuda:" + word);
  }
  return meant == all ? "" : meant;
}

Device parse_cuda_device(const std::string& word, const std::string& all) {
  constexpr std::string_view kPrefix = "cuda:";
  int index = -1;
  const std::string digits = word.starts_with(kPrefix) ? word.substr(kPrefix.size()) : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0 ||
      index >= kMostDevices) {
    const std::string meant = meant_devices(all);
    throw UsageError(fmt::format(
        "--devices {}: no such device; {} cpu, cuda (the GPUs of this task) or a list such as "
        "cuda:0,cuda:1",
        all.empty() ? "''" : all,
        meant.empty() ? "expected" : "did you mean '" + meant + "'? Expected"));
  }
  return {DeviceKind::kCuda, index};
}

Precision parse_precision(const std::string& text) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kF16}) {
    if (text == name(precision)) return precision;
  }
  throw InternalError("the flag lets only known names through");
}

int tasks_of_host(const ClusterSpec& task) {
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
       deal_out_gpus(static_cast<int>(usable.size()), task.local_rank, tasks_of_host(task))) {
    own.push_back(usable.at(static_cast<std::size_t>(i)));
  }
  return own;
}

}  // namespace

void add_device_flags(FlagSet& flags, DeviceFlags& devices) {
  flags.add("--devices", &devices.devices,
            "devices of the replicas: cpu | cuda (the GPUs of this task) | cuda:0,cuda:1 (divided "
            "among its replicas)",
            {.value = "LIST"});
  flags.add("--precision", &devices.precision,
            "type of activations (bf16 and fp16 require cuda; parameters stay f32)",
            {.choices = {"f32", "bf16", "fp16"}});
}

void take_device_flags(const DeviceFlags& flags, TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  strategy.precision = parse_precision(flags.precision);
  strategy.deterministic = options.deterministic;
  if (!options.cache_dir.empty()) strategy.plan_file = options.cache_dir / "cuda_plans";
  options.takes_own_gpus = flags.devices == "cuda";
  if (options.takes_own_gpus) {
    strategy.devices = {{DeviceKind::kCuda, 0}};
  } else if (flags.devices != "cpu") {
    strategy.devices.clear();
    std::istringstream words(flags.devices);
    for (std::string word; std::getline(words, word, ',');) {
      strategy.devices.push_back(parse_cuda_device(word, flags.devices));
    }
    if (strategy.devices.empty()) parse_cuda_device(flags.devices, flags.devices);
  }
  if (flags.devices == "cpu" && strategy.precision != Precision::kF32) {
    throw UsageError(fmt::format(
        "--precision {}: the CPU computes in f32; choose f32, or --devices cuda", flags.precision));
  }
}

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
    if (devices.size() < seen.size() && tasks_of_host(options.cluster) > 1) {
      log(LogLevel::kInfo,
          fmt::format("the {} visible here are divided among the {} tasks of this host: this task "
                      "has {}",
                      count_of_gpus(seen.size()), tasks_of_host(options.cluster),
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

}  // namespace syncopate
