// Parses --devices and --precision, and finds the devices that a task uses.
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

// Fills the strategy's options from the flags. Does not check that the devices exist, because the
// flags may be parsed on another machine. Throws UsageError for a wrong value.
void take_device_flags(const DeviceFlags& flags, TrainOptions& options);

// Finds the devices of this task's replicas. If the flags give no device numbers, the task takes
// the part of the visible GPUs that the environment assigns to it, else its part of those that can
// run this build. Throws UnavailableError, which names the GPU that is missing or cannot run it,
// and UsageError for a delayed worker that the GPUs do not have.
void find_devices(TrainOptions& options);

// Divides GPUs that several tasks see among these tasks. Called after the rendezvous and before a
// device is used. With a membership every task must call it, because the tasks exchange which GPUs
// they see; without one the devices from find_devices() stay. Logs the devices if the task uses
// only some of them. Throws PeerError if the exchange with another task fails.
void deal_out_devices(TrainOptions& options, Membership* membership);

// Starts to measure the load of this task's GPUs. Returns null on the CPU, and if the driver cannot
// measure the load.
std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options);

// Warns on stderr if --threads asks for more threads than this process has CPUs.
void warn_of_threads(const TrainOptions& options);

}  // namespace syncopate
