#include "deploy/cli/device_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "deploy/cli/flags.h"
#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/visible_gpus.h"

namespace syncopate {
namespace {

constexpr int kMostDevices = 1024;

Device parse_cuda_device(const std::string& word, const std::string& all) {
  constexpr std::string_view kPrefix = "cuda:";
  int index = -1;
  const std::string digits = word.starts_with(kPrefix) ? word.substr(kPrefix.size()) : "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0 ||
      index >= kMostDevices) {
    // What others call it.
    const std::string meant = word.starts_with("gpu") ? "cuda" : word;
    throw UsageError("--devices " + all + ": no such device" +
                     suggest(meant, {"cpu", "cuda", "cuda:0,cuda:1"}));
  }
  return {DeviceKind::kCuda, index};
}

Precision parse_precision(const std::string& text) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kF16}) {
    if (text == name(precision)) return precision;
  }
  throw UsageError("--precision " + text + ": no such precision" +
                   suggest(text, {"f32", "bf16", "fp16"}));
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

// "cuda:0, cuda:1"
std::string list_of(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) text += (text.empty() ? "" : ", ") + to_string(device);
  return text;
}

std::string count_of_gpus(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
}

// Of every task, by index: first its machine, then a line for each GPU.
std::vector<SeenGpus> exchange_seen(const std::vector<std::string>& bus_ids,
                                    Membership& membership) {
  std::string mine = own_boot_id();
  if (mine.empty()) mine = own_host_name();
  for (const std::string& id : bus_ids) mine += '\n' + id;
  std::vector<SeenGpus> all;
  for (const std::string& said : membership.exchange(mine)) {
    SeenGpus& seen = all.emplace_back();
    std::istringstream lines(said);
    std::getline(lines, seen.machine);
    for (std::string id; std::getline(lines, id);) seen.bus_ids.push_back(id);
  }
  return all;
}

}  // namespace

void add_device_flags(CLI::App& app, DeviceFlags& flags) {
  app.add_option("--devices", flags.devices,
                 "cpu | cuda (those of this task) | cuda:0,cuda:1 (dealt out to its replicas)")
      ->capture_default_str()
      ->group("Where");
  app.add_option("--precision", flags.precision,
                 "f32 | bf16, fp16 (of activations, on cuda; master values stay f32)")
      ->capture_default_str()
      ->group("Where");
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
    throw UsageError("--precision " + flags.precision +
                     ": the CPU computes in f32; choose f32, or --devices cuda");
  }
}

void find_devices(TrainOptions& options) {
  std::vector<Device>& devices = options.strategy.devices;
  if (devices.front().kind == DeviceKind::kCpu) return;
  const std::vector<CudaDevice> visible = load_cuda_module().devices();
  if (options.takes_own_gpus) {
    const ClusterSpec& task = options.cluster;
    devices = as_devices(task.gpus.empty() ? deal_out_gpus(static_cast<int>(visible.size()),
                                                           task.local_rank, tasks_of_host(task))
                                           : task.gpus);
  }
  for (const Device& device : devices) {
    if (std::cmp_less(device.index, visible.size())) continue;
    throw UnavailableError(
        "--devices " + to_string(device) + ": " + std::to_string(visible.size()) +
        (visible.size() == 1 ? " GPU is" : " GPUs are") + " visible here, from cuda:0");
  }
}

void deal_out_devices(TrainOptions& options, Membership* membership) {
  std::vector<Device>& devices = options.strategy.devices;
  std::vector<std::string> seen;
  if (options.takes_own_gpus) {
    for (const CudaDevice& device : load_cuda_module().devices()) seen.push_back(device.bus_id);
  }
  if (membership == nullptr) {
    if (devices.size() < seen.size() && tasks_of_host(options.cluster) > 1) {
      log(LogLevel::kInfo, "the " + count_of_gpus(seen.size()) +
                               " seen here are taken for those of " +
                               std::to_string(tasks_of_host(options.cluster)) +
                               " tasks of this host: this one has " + list_of(devices));
    }
    return;
  }
  const std::vector<SeenGpus> all = exchange_seen(seen, *membership);
  if (seen.empty()) return;
  const GpuShare share = share_of_gpus(all, static_cast<std::size_t>(membership->index()));
  devices = as_devices(share.gpus);
  if (share.tasks == 1) return;
  log(LogLevel::kInfo, std::to_string(share.tasks) + " tasks share " + count_of_gpus(seen.size()) +
                           " of this host: this one has " + list_of(devices));
}

std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options) {
  const std::vector<Device>& devices = options.strategy.devices;
  if (devices.front().kind == DeviceKind::kCpu) return nullptr;
  return load_cuda_module().monitor(devices);
}

}  // namespace syncopate
