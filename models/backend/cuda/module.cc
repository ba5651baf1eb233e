// Exports the one symbol of libsyncopate_cuda.so, through which the program lists the devices and
// makes a backend for each.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <sstream>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/device_speed.h"
#include "models/backend/cuda/nccl_sums.h"
#include "models/backend/cuda/nvml.h"
#include "models/backend/cuda_module.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

// Turns a version 13000 into "13.0" or 91900 into "9.19.0"; each library has its own encoding.
std::string dotted(std::size_t number, std::size_t major, std::size_t minor) {
  if (minor <= 10) return fmt::format("{}.{}", number / major, number % major / minor);
  return fmt::format("{}.{}.{}", number / major, number % major / minor, number % minor);
}

int count_devices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  int driver = 0;
  if (code == cudaErrorInsufficientDriver || code == cudaErrorStubLibrary) {
    cudaDriverGetVersion(&driver);
    if (driver == 0) {
      throw UnavailableError(
          "no NVIDIA driver is loaded here; choose --devices cpu, or run on a GPU node (in a "
          "container: apptainer --nv, docker --gpus all)");
    }
    throw UnavailableError(fmt::format(
        "the NVIDIA driver is for CUDA {}, too old for CUDA {}; a newer driver is needed",
        dotted(static_cast<std::size_t>(driver), 1000, 10), dotted(CUDART_VERSION, 1000, 10)));
  }
  if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0)) {
    throw UnavailableError(
        "no GPU is visible: CUDA_VISIBLE_DEVICES may hide them, or the job has none; choose "
        "--devices cpu, or request GPUs (--gpus-per-task)");
  }
  if (code == cudaSuccess) return count;
  std::string advice = "nvidia-smi may show the cause";
  if (code == cudaErrorSystemNotReady) advice = "see whether nvidia-fabricmanager runs";
  if (code == cudaErrorSystemDriverMismatch) advice = "the driver was changed: restart the machine";
  throw UnavailableError(fmt::format("the GPUs cannot be used ({}: {}); {}", cudaGetErrorName(code),
                                     cudaGetErrorString(code), advice));
}

std::string bus_id_of(int device) {
  std::array<char, 32> bus_id{};
  check_cuda(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device));
  return bus_id.data();
}

class Module final : public CudaModule {
 public:
  std::vector<std::string> architectures() const override {
    std::vector<std::string> all;
    std::istringstream words(SYNCOPATE_CUDA_ARCHITECTURES);
    for (std::string word; words >> word;) all.push_back(word);
    return all;
  }

  std::vector<LibraryVersion> library_versions() const override {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    int nccl = 0;
    ncclGetVersion(&nccl);
    return {
        {"CUDA", dotted(CUDART_VERSION, 1000, 10),
         dotted(static_cast<std::size_t>(runtime), 1000, 10)},
        {"cuDNN", dotted(CUDNN_VERSION, 10000, 100), dotted(cudnnGetVersion(), 10000, 100)},
        {"cuBLAS", dotted(CUBLAS_VERSION, 10000, 100), dotted(cublasLtGetVersion(), 10000, 100)},
        {"NCCL", dotted(NCCL_VERSION_CODE, 10000, 100),
         dotted(static_cast<std::size_t>(nccl), 10000, 100)}};
  }

  std::vector<CudaDevice> devices() const override {
    std::vector<CudaDevice> found;
    for (int i = 0; i < count_devices(); ++i) {
      cudaDeviceProp properties{};
      check_cuda(cudaGetDeviceProperties(&properties, i));
      found.push_back({.name = properties.name,
                       .major = properties.major,
                       .minor = properties.minor,
                       .multiprocessors = properties.multiProcessorCount,
                       .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                       .bus_id = bus_id_of(i)});
    }
    return found;
  }

  std::unique_ptr<Backend> make_backend(const BackendOptions& options) const override {
    const int count = count_devices();
    if (options.device.index >= count) {
      throw UnavailableError(
          fmt::format("{}: {} visible here, from cuda:0", to_string(options.device),
                      count == 1 ? "1 GPU is" : fmt::format("{} GPUs are", count)));
    }
    return make_cuda_backend(options, [&](cudaStream_t stream) {
      return make_nvidia_operations(stream, options.plan_file);
    });
  }

  std::vector<std::unique_ptr<DeviceCollective>> join_on_one_gpu(
      const Device& device, int replicas, std::chrono::nanoseconds timeout) const override {
    auto sums = make_shared_gpu_sums(device.index, replicas, timeout);
    return {std::make_move_iterator(sums.begin()), std::make_move_iterator(sums.end())};
  }

  std::unique_ptr<DeviceCollective> join_by_nccl(const DeviceRank& rank) const override {
    return make_nccl_sums(rank, nccl_library());
  }

  std::unique_ptr<DeviceMonitor> monitor(std::span<const Device> devices) const override {
    constexpr std::chrono::milliseconds kInterval(500);
    std::vector<std::string> bus_ids;
    for (const Device& device : devices) {
      std::string bus_id = bus_id_of(device.index);
      // Each bus id is listed once, as several replicas may share a device.
      if (std::ranges::find(bus_ids, bus_id) == bus_ids.end()) {
        bus_ids.push_back(std::move(bus_id));
      }
    }
    return make_nvml_monitor("libnvidia-ml.so.1", bus_ids, kInterval);
  }

  DeviceCeilings ceilings(Device device, Precision precision) const override {
    return measure_ceilings(device.index, precision);
  }
};

}  // namespace
}  // namespace syncopate::cuda

extern "C" __attribute__((visibility("default"))) const syncopate::CudaModule*
syncopate_cuda_module(const char* build) {
  static const syncopate::cuda::Module module;
  return syncopate::cuda_module_build() == build ? &module : nullptr;
}
