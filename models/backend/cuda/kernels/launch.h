// Starts a kernel and checks that CUDA accepted it. Every kernel of this folder is started by
// launch(), the only code here that depends on nvcc. Compiled as plain C++, the kernels run on the
// emulated grid in tests/models/backend/cuda/, which has another definition of launch().
#pragma once

#include <cuda_runtime_api.h>

namespace syncopate::cuda {

struct Launch {
  const char* kernel = "";  // the kernel's name for error messages
  dim3 blocks;
  unsigned threads = 0;  // the number of threads of a block
  cudaStream_t stream = nullptr;
};

// Throws DeviceError with the kernel's name, its grid and CUDA's code.
[[noreturn]] void throw_launch_error(const Launch& refused, cudaError_t code);

#ifdef __CUDACC__
template <typename... Parameters, typename... Arguments>
void launch(const Launch& how, void (*kernel)(Parameters...), const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = how.blocks;
  config.blockDim = dim3(how.threads);
  config.stream = how.stream;
  const cudaError_t code = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  if (code != cudaSuccess) throw_launch_error(how, code);
}
#endif

}  // namespace syncopate::cuda
