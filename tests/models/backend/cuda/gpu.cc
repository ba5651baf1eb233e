#include <cuda_runtime_api.h>

#include <gtest/gtest.h>

#include <cstdio>

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

// Without a GPU the whole program is skipped. To skip a thousand tests in a process each takes a minute.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto reason = syncopate::cuda::why_no_device();
  if (!reason || GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  std::puts(reason->c_str());
  return 77;  // SKIP_RETURN_CODE
}
