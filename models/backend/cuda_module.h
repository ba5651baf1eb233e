// The interface of the CUDA module, libsyncopate_cuda.so (models/backend/cuda/). The program itself
// links no CUDA library, so the same binary starts on a login node and on a GPU node.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/device_collective.h"
#include "models/backend/device_load.h"

namespace syncopate {

struct CudaDevice {
  std::string name;          // such as "NVIDIA H200"
  int major = 0, minor = 0;  // the compute capability
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::string bus_id;  // the PCI address, "0000:1b:00.0"
};

inline constexpr int kMostReplicasOnOneGpu = 32;

// Measured upper limits of a device's speed: bytes and operations per second.
struct DeviceCeilings {
  double copy_bytes_per_second = 0.0;     // bytes read and written by a large copy
  double product_flops_per_second = 0.0;  // operations of a large matrix product
};

// The loaded CUDA module. Immutable and thread-safe.
class CudaModule {
 public:
  virtual ~CudaModule() = default;

  // Returns the architectures that the module has code for, as CMAKE_CUDA_ARCHITECTURES names them:
  // "75-real", "90a-real", "90-virtual".
  virtual std::vector<std::string> architectures() const = 0;
  // Returns the versions of cuDNN, cuBLAS, NCCL and the CUDA runtime with which the module was
  // built, and those loaded now.
  virtual std::vector<LibraryVersion> library_versions() const = 0;
  // Returns the visible CUDA devices, at least one. Throws UnavailableError when there is no
  // driver, the driver is too old, or there is no device.
  virtual std::vector<CudaDevice> devices() const = 0;
  // Makes the backend of a GPU. Throws UnavailableError when there is no usable driver, when the
  // device does not exist, or when it does not support the precision.
  virtual std::unique_ptr<Backend> make_backend(const BackendOptions& options) const = 0;
  // Makes the collectives of a job with all replicas on one device. Element i of the result belongs
  // to rank i. A sum that takes longer than `timeout` fails. replicas <= kMostReplicasOnOneGpu.
  // Throws DeviceError.
  virtual std::vector<std::unique_ptr<DeviceCollective>> join_on_one_gpu(
      const Device& device, int replicas, std::chrono::nanoseconds timeout) const = 0;
  // Makes the NCCL collective of a replica that has a device of its own. Throws DeviceError.
  virtual std::unique_ptr<DeviceCollective> join_by_nccl(const DeviceRank& rank) const = 0;
  // Starts to measure the load of these GPUs. Returns null when the driver does not report the
  // load.
  virtual std::unique_ptr<DeviceMonitor> monitor(std::span<const Device> devices) const = 0;
  // Measures the upper limits of a GPU's speed in a precision. The measurement takes 0.1 s. Throws
  // DeviceError, OutOfMemoryError.
  virtual DeviceCeilings ceilings(Device device, Precision precision) const = 0;
};

// Loads the CUDA module from the run path of the program (its own folder, then ../lib) or from
// LD_LIBRARY_PATH, and keeps it loaded until the process ends. Throws UnavailableError when the
// module or a library that the module needs is missing, or when the module belongs to another
// build.
const CudaModule& load_cuda_module();

// Returns why a device cannot run code for these architectures, or cannot compute in this
// precision, and what to try. Returns "" if it can do both.
std::string why_unusable(const CudaDevice& device, Precision precision,
                         std::span<const std::string> architectures);

// Returns the identifier of this build. The program and the CUDA module must have equal
// identifiers. The identifier is compiled into the library that both of them link.
std::string cuda_module_build();

// The type of the only function that the CUDA module exports, named kCudaModuleSymbol. The function
// returns null when `build` is not the module's cuda_module_build().
using CudaModuleEntry = const CudaModule*(const char* build);
inline constexpr const char* kCudaModuleFile = "libsyncopate_cuda.so";
inline constexpr const char* kCudaModuleSymbol = "syncopate_cuda_module";

}  // namespace syncopate
