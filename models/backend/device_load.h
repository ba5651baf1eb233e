// How busy devices were, as their driver counts it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace syncopate {

struct DeviceLoad {
  double utilisation = 0.0;       // share of the time in which a kernel ran, mean over devices
  std::int64_t memory_bytes = 0;  // largest use, of the device that used most; everybody's
  double watts = 0.0;             // mean, of all devices together
};

// Thread-safe.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Since it was made; none before the first sample.
  virtual std::optional<DeviceLoad> load() const = 0;
};

}  // namespace syncopate
