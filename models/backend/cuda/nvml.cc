#include "models/backend/cuda/nvml.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>

namespace syncopate::cuda {
namespace {

using NvmlDevice = void*;
struct Utilization {
  unsigned gpu = 0;  // percent of time that a kernel ran
  unsigned memory = 0;
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // NOLINT(google-runtime-int): NVML's types
};
constexpr int kSuccess = 0;

// The functions of the NVML library that this file calls; all are null if one is missing.
struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*handle)(const char*, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, Utilization*) = nullptr;
  int (*memory)(NvmlDevice, Memory*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;  // writes milliwatts

  static Functions of(const std::string& library) {
    Functions functions;
    // The NVML library is never closed, because unloading a driver's library is unsafe.
    void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return functions;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(opened, name));
      return function != nullptr;
    };
    const bool has_all = find(functions.init, "nvmlInit_v2") &&
                         find(functions.shutdown, "nvmlShutdown") &&
                         find(functions.handle, "nvmlDeviceGetHandleByPciBusId_v2") &&
                         find(functions.utilization, "nvmlDeviceGetUtilizationRates") &&
                         find(functions.memory, "nvmlDeviceGetMemoryInfo") &&
                         find(functions.power, "nvmlDeviceGetPowerUsage");
    return has_all ? functions : Functions();
  }
};

class NvmlMonitor final : public DeviceMonitor {
 public:
  // The NVML functions are already initialised; the monitor shuts NVML down.
  NvmlMonitor(const Functions& functions, std::vector<NvmlDevice> devices,
              std::chrono::milliseconds interval)
      : functions_(functions), devices_(std::move(devices)) {
    thread_ = std::jthread([this, interval](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), "nvml");
      std::unique_lock lock(mutex_);
      // The driver reports the utilisation of the time before a call, so the first sample is taken
      // after the first interval.
      while (!woken_.wait_for(lock, stop, interval, [&] { return stop.stop_requested(); })) {
        lock.unlock();
        sample();
        lock.lock();
      }
    });
  }
  NvmlMonitor(const NvmlMonitor&) = delete;
  NvmlMonitor& operator=(const NvmlMonitor&) = delete;
  ~NvmlMonitor() override {
    thread_.request_stop();
    thread_.join();
    functions_.shutdown();
  }

  std::optional<DeviceLoad> load() const override {
    const std::lock_guard lock(mutex_);
    if (samples_ == 0) return std::nullopt;
    return DeviceLoad{.utilisation = utilisation_ / samples_,
                      .memory_bytes = memory_bytes_,
                      .watts = watts_ / samples_};
  }

 private:
  // Queries NVML without holding the lock, since the calls take time.
  void sample() {
    double utilisation = 0.0;
    double watts = 0.0;
    std::int64_t memory_bytes = 0;
    for (NvmlDevice const device : devices_) {
      Utilization rates;
      Memory memory;
      unsigned milliwatts = 0;
      if (functions_.utilization(device, &rates) != kSuccess ||
          functions_.memory(device, &memory) != kSuccess ||
          functions_.power(device, &milliwatts) != kSuccess) {
        return;  // a lost device is reported by the training thread
      }
      utilisation += rates.gpu / 100.0;
      watts += milliwatts / 1000.0;
      memory_bytes = std::max(memory_bytes, static_cast<std::int64_t>(memory.used));
    }
    const std::lock_guard lock(mutex_);
    samples_ += 1.0;
    utilisation_ += utilisation / static_cast<double>(devices_.size());
    watts_ += watts;
    memory_bytes_ = std::max(memory_bytes_, memory_bytes);
  }

  const Functions functions_;
  const std::vector<NvmlDevice> devices_;
  mutable std::mutex mutex_;  // guards the sums of the samples
  std::condition_variable_any woken_;
  double samples_ = 0.0;
  double utilisation_ = 0.0;
  double watts_ = 0.0;
  std::int64_t memory_bytes_ = 0;
  std::jthread thread_;  // declared last, because it uses all members above
};

}  // namespace

std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& library,
                                                 std::span<const std::string> bus_ids,
                                                 std::chrono::milliseconds interval) {
  const Functions functions = Functions::of(library);
  if (functions.init == nullptr || functions.init() != kSuccess) return nullptr;
  std::vector<NvmlDevice> devices;
  for (const std::string& bus_id : bus_ids) {
    NvmlDevice device = nullptr;
    if (functions.handle(bus_id.c_str(), &device) == kSuccess) devices.push_back(device);
  }
  if (devices.empty()) {
    functions.shutdown();
    return nullptr;
  }
  return std::make_unique<NvmlMonitor>(functions, std::move(devices), interval);
}

}  // namespace syncopate::cuda
