#include "deploy/device_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "deploy/flags.h"
#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
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
    std::vector<int> own = task.gpus;
    if (own.empty()) {
      own = deal_out_gpus(static_cast<int>(visible.size()), task.local_rank,
                          std::max(task.local_size, task.most_local_tasks));
    }
    devices.clear();
    for (const int gpu : own) devices.push_back({DeviceKind::kCuda, gpu});
  }
  for (const Device& device : devices) {
    if (std::cmp_less(device.index, visible.size())) continue;
    throw UnavailableError(
        "--devices " + to_string(device) + ": " + std::to_string(visible.size()) +
        (visible.size() == 1 ? " GPU is" : " GPUs are") + " visible here, from cuda:0");
  }
}

std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options) {
  const std::vector<Device>& devices = options.strategy.devices;
  if (devices.front().kind == DeviceKind::kCpu) return nullptr;
  return load_cuda_module().monitor(devices);
}

}  // namespace syncopate
