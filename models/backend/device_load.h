// The load of GPUs (utilisation, memory, power), as reported by their driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace syncopate {

struct DeviceLoad {
  double utilisation = 0.0;  // fraction of the time in which a kernel ran, mean over devices
  // The memory in use by all processes, on the device with the most memory in use.
  std::int64_t memory_bytes = 0;
  double watts = 0.0;  // power of all devices together, mean over time
};

// Measures the load of a set of GPUs. Thread-safe.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Returns the GPUs' load over the life of this object, or nullopt before the first sample.
  virtual std::optional<DeviceLoad> load() const = 0;
};

}  // namespace syncopate
