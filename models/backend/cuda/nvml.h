// Reads the utilisation of GPUs from NVML, a library of the driver. NVML comes with the driver, so
// it is opened at run time. nvml.cc declares NVML's functions, so building needs no header of NVML.
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

// Returns a monitor that samples the devices with these PCI addresses, such as "0000:18:00.0", on a
// thread of its own while the monitor lives. library: the file name of NVML, "libnvidia-ml.so.1".
// Returns null if the library is missing or knows none of the devices; training then continues
// without a monitor.
std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& library,
                                                 std::span<const std::string> bus_ids,
                                                 std::chrono::milliseconds interval);

}  // namespace syncopate::cuda
