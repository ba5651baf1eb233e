// The CUDA module, libsyncopate_cuda.so (models/backend/cuda/), as the program sees it. The program
// itself links no CUDA library: the same binary starts on a login node and on a GPU node.
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
#include "models/backend/library_version.h"

namespace syncopate {

struct CudaDevice {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::string bus_id;  // where it is in this machine, "0000:1b:00.0"
};

inline constexpr int kMostReplicasOnOneGpu = 32;

// What a device reaches at most, as it was just measured.
struct DeviceCeilings {
  double copy_bytes_per_second = 0.0;     // of a large copy, read and written
  double product_flops_per_second = 0.0;  // of a large product
};

// Immutable, thread-safe.
class CudaModule {
 public:
  virtual ~CudaModule() = default;

  // cuDNN, cuBLAS, NCCL, the CUDA runtime: as built and as loaded.
  virtual std::vector<LibraryVersion> library_versions() const = 0;
  // The visible ones, at least one. Throws UnavailableError: no driver, one that is too old, no
  // device; it says which, and what to try.
  virtual std::vector<CudaDevice> devices() const = 0;
  // Throws UnavailableError as devices(), and for a device or a precision that is not there.
  virtual std::unique_ptr<Backend> make_backend(const BackendOptions& options) const = 0;
  // By rank: what sums the gradients of replicas that are all of a job, and all on one device. At
  // most kMostReplicasOnOneGpu. Throws DeviceError.
  virtual std::vector<std::unique_ptr<DeviceCollective>> join_on_one_gpu(
      const Device& device, int replicas, std::chrono::nanoseconds patience) const = 0;
  // NCCL, for a replica with a device of its own. Throws DeviceError.
  virtual std::unique_ptr<DeviceCollective> join_by_nccl(const DeviceRank& rank) const = 0;
  // How busy these devices are from now on; null where the driver does not say.
  virtual std::unique_ptr<DeviceMonitor> monitor(std::span<const Device> devices) const = 0;
  // In that precision; takes a tenth of a second. Throws DeviceError, OutOfMemoryError.
  virtual DeviceCeilings ceilings(Device device, Precision precision) const = 0;
};

// The module is looked for as any library is: in this program's run path (its own folder, ../lib),
// then in LD_LIBRARY_PATH. It stays loaded as long as the process lives. Throws UnavailableError:
// it is not there, a library that it needs is not, or it belongs to another build.
const CudaModule& load_cuda_module();

// What both sides must agree on; a module of another build is refused. In the library that both
// link.
std::string cuda_module_build();

// The one symbol that the module exports, under kCudaModuleSymbol: null when `build` is not the
// module's own.
using CudaModuleEntry = const CudaModule*(const char* build);
inline constexpr const char* kCudaModuleFile = "libsyncopate_cuda.so";
inline constexpr const char* kCudaModuleSymbol = "syncopate_cuda_module";

}  // namespace syncopate
