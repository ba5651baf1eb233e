// The CUDA module with an emulated device in it: `syncopate train --devices cuda` runs through
// every strategy where no GPU is. Tests put it in front of the real one.
#include <iterator>

#include "models/backend/cuda/cuda_backend.h"
#include "models/backend/cuda/nccl_sums.h"
#include "models/backend/cuda/shared_gpu_sums.h"
#include "models/backend/cuda_module.h"
#include "tests/models/backend/cuda/emulated_operations.h"
#include "tests/models/backend/cuda/fake_nccl.h"

namespace syncopate::cuda {
namespace {

class HalfBusy final : public DeviceMonitor {
 public:
  std::optional<DeviceLoad> load() const override {
    return DeviceLoad{.utilisation = 0.5, .memory_bytes = 1 << 20, .watts = 70.0};
  }
};

class EmulatedModule final : public CudaModule {
 public:
  std::vector<LibraryVersion> library_versions() const override {
    return {{"CUDA", "emulated", "emulated"}};
  }
  std::vector<CudaDevice> devices() const override {
    CudaDevice device{
        .name = "an emulated GPU", .major = 9, .multiprocessors = 1, .bus_id = "emulated:0"};
    CudaDevice other = device;
    other.bus_id = "emulated:1";
    return {device, other};
  }
  std::unique_ptr<Backend> make_backend(const BackendOptions& options) const override {
    return make_cuda_backend(options,
                             [](cudaStream_t stream) { return make_emulated_operations(stream); });
  }
  std::vector<std::unique_ptr<DeviceCollective>> join_on_one_gpu(
      const Device& device, int replicas, std::chrono::nanoseconds patience) const override {
    auto sums = make_shared_gpu_sums(device.index, replicas, patience);
    return {std::make_move_iterator(sums.begin()), std::make_move_iterator(sums.end())};
  }
  std::unique_ptr<DeviceCollective> join_by_nccl(const DeviceRank& rank) const override {
    return make_nccl_sums(rank, fake_nccl());
  }
  std::unique_ptr<DeviceMonitor> monitor(std::span<const Device> /*devices*/) const override {
    return std::make_unique<HalfBusy>();
  }
  DeviceCeilings ceilings(Device /*device*/, Precision /*precision*/) const override {
    return {.copy_bytes_per_second = 4e12, .product_flops_per_second = 8e14};
  }
};

}  // namespace
}  // namespace syncopate::cuda

extern "C" __attribute__((visibility("default"))) const syncopate::CudaModule*
syncopate_cuda_module(const char* build) {
  static const syncopate::cuda::EmulatedModule module;
  return syncopate::cuda_module_build() == build ? &module : nullptr;
}
