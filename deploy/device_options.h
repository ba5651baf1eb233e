// --devices and --precision: on what replicas compute, and in which type.
#pragma once

#include <memory>
#include <string>

#include "deploy/options.h"
#include "models/backend/device_load.h"

namespace CLI {
class App;
}

namespace syncopate {

struct DeviceFlags {
  std::string devices = "cpu";
  std::string precision = "f32";
};

void add_device_flags(CLI::App& app, DeviceFlags& flags);

// What they say goes into the strategy's options; whether such devices are here is not asked: the
// flags may be read on another machine. Throws UsageError.
void take_device_flags(const DeviceFlags& flags, TrainOptions& options);

// The devices of this task's replicas: where no numbers were given, the GPUs that the launcher gave
// it, or all that are visible. Throws UnavailableError, saying what is missing.
void find_devices(TrainOptions& options);

// How busy this task's GPUs are from now on; null on the CPU, and where the driver does not say.
std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options);

}  // namespace syncopate
