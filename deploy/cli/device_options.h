// --devices and --precision: on what replicas compute, and in which type.
#pragma once

#include <memory>
#include <string>

#include "deploy/cli/options.h"
#include "models/backend/device_load.h"
#include "strategies/cluster/membership.h"

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

// The devices of this task's replicas: where no numbers were given, its part of the visible GPUs,
// by what the environment says. Throws UnavailableError, saying what is missing.
void find_devices(TrainOptions& options);

// Once the tasks have met, and before a device is used: with a membership every task calls, tells
// the others which GPUs it sees, and has its part of those that others see too, or all of them.
// Says which they are where that is not all. Without one it is as find_devices() has it. Throws
// PeerError.
void deal_out_devices(TrainOptions& options, Membership* membership);

// How busy this task's GPUs are from now on; null on the CPU, and where the driver does not say.
std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options);

}  // namespace syncopate
