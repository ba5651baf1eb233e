// Replaces NVML by a library with two devices, one of which is twice as busy as the other.
#include <cstring>

namespace {

int devices[2];
int initialised = 0;

int index_of(const void* device) { return device == &devices[1] ? 1 : 0; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return ++initialised, 0; }
int nvmlShutdown() { return --initialised, 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  if (initialised == 0) return 1;
  if (std::strcmp(bus_id, "0000:18:00.0") == 0) {
    *device = &devices[0];
  } else if (std::strcmp(bus_id, "0000:2a:00.0") == 0) {
    *device = &devices[1];
  } else {
    return 6;  // NVML's "not found"
  }
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  rates[0] = index_of(device) == 0 ? 40 : 80;
  rates[1] = 7;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = 100;
  memory[1] = 90;
  memory[2] = index_of(device) == 0 ? 10 : 30;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = index_of(device) == 0 ? 200'000 : 300'000;
  return 0;
}

}  // extern "C"
