#include <cuda_runtime_api.h>

#include "tests/models/backend/cuda/device_under_test.h"

namespace syncopate::cuda {

PlanOperations operations_under_test() {
  return [](cudaStream_t stream) { return make_nvidia_operations(stream); };
}

// The tolerance for f32 sums on a GPU is larger, since cuDNN may choose transforms that add and
// subtract before they multiply.
double f32_tolerance() { return 1e-4; }

std::optional<std::string> why_no_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return std::nullopt;
  return "no GPU here: " + std::string(cudaGetErrorString(code));
}

}  // namespace syncopate::cuda
