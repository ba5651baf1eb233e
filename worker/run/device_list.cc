// Reads --devices, and completes the options that depend on the devices.
#include <fmt/format.h>

#include <sstream>

#include "models/base/errors.h"
#include "models/base/lower_case.h"
#include "models/base/parse_number.h"
#include "worker/run/run_devices.h"

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
  const std::string digits = word.starts_with(kPrefix) ? word.substr(kPrefix.size()) : "";
  const int index = parse_number<int>(digits).value_or(-1);
  if (index < 0 || index >= kMostDevices) {
    const std::string meant = meant_devices(all);
    throw UsageError(fmt::format(
        "--devices {}: no such device; {} cpu, cuda (the GPUs of this task) or a list such as "
        "cuda:0,cuda:1",
        all.empty() ? "''" : all,
        meant.empty() ? "expected" : "did you mean '" + meant + "'? Expected"));
  }
  return {DeviceKind::kCuda, index};
}

}  // namespace

void read_devices(const std::string& list, TrainOptions& options) {
  std::vector<Device>& devices = options.strategy.devices;
  options.takes_own_gpus = list == "cuda";
  if (options.takes_own_gpus) {
    devices = {{DeviceKind::kCuda, 0}};
  } else if (list == "cpu") {
    devices = {Device{}};
  } else {
    devices.clear();
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
      devices.push_back(parse_cuda_device(word, list));
    }
    if (devices.empty()) parse_cuda_device(list, list);
  }
}

void complete_devices(TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  strategy.deterministic = options.deterministic;
  if (!options.cache_dir.empty()) strategy.plan_file = options.cache_dir / "cuda_plans";
  if (strategy.devices.front().kind == DeviceKind::kCpu && strategy.precision != Precision::kF32) {
    throw UsageError(
        fmt::format("--precision {}: the CPU computes in f32; choose f32, or --devices cuda",
                    name(strategy.precision)));
  }
}

}  // namespace syncopate
