// NVML, the driver's own library for what a GPU is doing. It comes with the driver, so it is opened
// at run time, and its functions are named here: no header of it is needed to build.
// Source: NVML API reference, "Device Queries".
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "models/backend/device_load.h"

namespace syncopate::cuda {

// Samples the devices with these addresses on the PCI bus ("0000:18:00.0") on a thread of its own
// as long as it lives. library: "libnvidia-ml.so.1". Null where there is none, or it knows none of
// them: figures are then missing, and training goes on.
std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& library,
                                                 std::span<const std::string> bus_ids,
                                                 std::chrono::milliseconds interval);

}  // namespace syncopate::cuda
