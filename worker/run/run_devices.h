// Reads --devices, finds the devices that a task uses and divides GPUs among the
// tasks that see them.
#pragma once

#include <memory>
#include <string>

#include "models/backend/device_load.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Fills strategy.devices and takes_own_gpus from "cpu", "cuda" or a list such as "cuda:0,cuda:1".
// Does not check that the devices exist, because the flags may be parsed on another machine. Throws
// UsageError for a wrong list, with a suggestion if another program's notation can be recognised.
void read_devices(const std::string& list, TrainOptions& options);
// Completes the options that say which devices the task uses. Call it after all flags are parsed.
// Throws UsageError if the devices do not support --precision.
void complete_devices(TrainOptions& options);

// Finds the devices of this task's replicas. If the flags give no device numbers, the task takes
// the visible GPUs that the environment assigns to it. If the environment assigns none, it takes
// its share of the visible GPUs that can run this build. Throws UnavailableError naming a GPU that
// is missing or cannot run this build. Throws UsageError as check_delayed_workers() does.
void find_devices(TrainOptions& options);

// Divides GPUs that several tasks see among these tasks. Call it after the rendezvous and before a
// device is used. With a membership every task must call it, because the tasks exchange lists of
// the GPUs that they see. Without a membership the task keeps the devices from find_devices(). Logs
// the devices if the task uses only some of them. Throws PeerError if the exchange with another
// task fails.
void deal_out_devices(TrainOptions& options, Membership* membership);

// Starts to measure the load of this task's GPUs. Returns null if the task runs on the CPU or the
// driver cannot measure the load.
std::unique_ptr<DeviceMonitor> monitor_devices(const TrainOptions& options);

// Warns on stderr if --threads asks for more threads than this process has CPUs.
void warn_of_threads(const TrainOptions& options);

// Throws UsageError if --slow or --pause names a worker that the job does not have.
void check_delayed_workers(const TrainOptions& options);

}  // namespace syncopate
