#include "deploy/cli/device_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "models/base/errors.h"
#include "models/base/lower_case.h"

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

}  // namespace syncopate
