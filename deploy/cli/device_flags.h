// --devices and --precision, and the devices that a task finds and uses.
#pragma once

#include <memory>
#include <string>

#include "deploy/cli/flag_set.h"
#include "models/backend/device_load.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"

namespace syncopate {

struct DeviceFlags {
  std::string devices = "cpu";
  std::string precision = "f32";
};

void add_device_flags(FlagSet& flags, DeviceFlags& devices);

// Fills the strategy's options. Whether the devices exist is not checked, because the flags may be
// read on another machine. Throws UsageError.
void take_device_flags(const DeviceFlags& flags, TrainOptions& options);

// The devices of this task's replicas: where the flags give no numbers, the part of the visible
// GPUs that the environment gives to this task. Throws UnavailableError, which names what is
// missing.
void find_devices(TrainOptions& options);

// Called after the rendezvous and before a device is used. With a membership every task calls it:
// the tasks exchange which GPUs they see, and GPUs that several tasks see are divided among them.
// Logs the devices where they are not all. Without a membership the devices of find_devices() stay.
// Throws PeerError.
void deal_out_devices(TrainOptions& options, Membership* membership);

// Measures the load of this task's GPUs from now on; null on the CPU, and where the driver cannot.
std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options);

// Warns on stderr if --threads asks for more threads than this process has CPUs.
void warn_of_threads(const TrainOptions& options);

}  // namespace syncopate
