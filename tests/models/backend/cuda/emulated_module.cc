// This CUDA module has emulated devices, so that `syncopate train --devices cuda` runs every
// strategy without a GPU. Tests load it in place of the real module, and configure it by
// environment variables: EMULATED_GPUS=4 is the number of devices (2 by default).
// EMULATED_GPUS_FROM=2 is the machine's number of the first device (0 by default).
// EMULATED_GPUS_MAJOR=79 are the major numbers of their compute capability, a digit each, of which
// the last one is that of all others (9 by default).
// EMULATED_NCCL_TIMEOUT=2 caps the strategy's timeout, in seconds. EMULATED_NCCL=init-fails:1
// injects a fault into the process of that rank; other faults are never-connects:1, id-fails:0,
// breaks:1 (in some step), reports-lost-ranks:0.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/backend/cuda/nccl_sums.h"
#include "models/backend/cuda_module.h"
#include "tests/models/backend/cuda/emulated_operations.h"
#include "tests/models/backend/cuda/fake_nccl.h"

namespace syncopate::cuda {
namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Returns whether EMULATED_NCCL names this fault for this rank.
bool is_injected(const std::string& what, int rank) {
  return variable("EMULATED_NCCL", "") == what + ":" + std::to_string(rank);
}

void inject_faults(int rank) {
  FakeNcclFaults& faults = fake_nccl_faults();
  if (is_injected("id-fails", rank)) faults.id_fails = true;
  if (is_injected("init-fails", rank)) faults.init_error = ncclSystemError;
  if (is_injected("never-connects", rank)) faults.never_connects = true;
  if (is_injected("breaks", rank)) faults.sums_until_error = 20;
  if (is_injected("reports-lost-ranks", rank)) faults.reports_lost_ranks = true;
}

class HalfBusy final : public DeviceMonitor {
 public:
  std::optional<DeviceLoad> load() const override {
    return DeviceLoad{.utilisation = 0.5, .memory_bytes = 1 << 20, .watts = 70.0};
  }
};

class EmulatedModule final : public CudaModule {
 public:
  std::vector<std::string> architectures() const override { return {"80-real", "90-virtual"}; }
  std::vector<LibraryVersion> library_versions() const override {
    return {{"CUDA", "emulated", "emulated"}};
  }
  std::vector<CudaDevice> devices() const override {
    std::vector<CudaDevice> found;
    const int first = std::stoi(variable("EMULATED_GPUS_FROM", "0"));
    const std::string majors = variable("EMULATED_GPUS_MAJOR", "9");
    for (int i = 0; i < std::stoi(variable("EMULATED_GPUS", "2")); ++i) {
      found.push_back(
          {.name = "an emulated GPU",
           .major = majors[std::min(static_cast<std::size_t>(i), majors.size() - 1)] - '0',
           .multiprocessors = 1,
           .bus_id = "emulated:" + std::to_string(first + i)});
    }
    return found;
  }
  std::unique_ptr<Backend> make_backend(const BackendOptions& options) const override {
    return make_cuda_backend(options,
                             [](cudaStream_t stream) { return make_emulated_operations(stream); });
  }
  std::vector<std::unique_ptr<DeviceCollective>> join_on_one_gpu(
      const Device& device, int replicas, std::chrono::nanoseconds timeout) const override {
    auto sums = make_shared_gpu_sums(device.index, replicas, timeout);
    return {std::make_move_iterator(sums.begin()), std::make_move_iterator(sums.end())};
  }
  std::unique_ptr<DeviceCollective> join_by_nccl(const DeviceRank& rank) const override {
    inject_faults(rank.rank);
    DeviceRank own = rank;
    const std::chrono::seconds most(std::stoi(variable("EMULATED_NCCL_TIMEOUT", "600")));
    own.timeout = std::min<std::chrono::nanoseconds>(own.timeout, most);
    return make_nccl_sums(own, fake_nccl());
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
