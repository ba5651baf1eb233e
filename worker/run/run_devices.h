// Finds the devices that a task uses and divides GPUs among the tasks that see them.
#pragma once

#include <memory>

#include "models/backend/device_load.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"

namespace syncopate {

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

// Throws UsageError for a delay or pause of a worker that the job does not have.
void check_delayed_workers(const TrainOptions& options);

}  // namespace syncopate
