// The load of GPUs (utilisation, memory, power), as reported by their driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace syncopate {

struct DeviceLoad {
  double utilisation = 0.0;       // fraction of time that a kernel ran, mean over devices
  std::int64_t memory_bytes = 0;  // largest use of one device, by all processes together
  double watts = 0.0;             // watts of all devices together, mean over time
};

// Reports the load of some GPUs. Thread-safe.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Returns the GPUs' load since this object was made; nullopt before the first sample.
  virtual std::optional<DeviceLoad> load() const = 0;
};

}  // namespace syncopate
