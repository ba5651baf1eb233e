#include "models/backend/cuda/kernels/launch.h"

#include <string>

#include "models/base/errors.h"

namespace syncopate::cuda {

void throw_launch_error(const Launch& refused, cudaError_t code) {
  cudaGetLastError();  // clears the code, else the runtime reports it again from another call
  throw DeviceError(std::string("CUDA: kernel ") + refused.kernel + " with " +
                    std::to_string(refused.blocks.x) + " x " + std::to_string(refused.blocks.y) +
                    " blocks of " + std::to_string(refused.threads) +
                    " threads was not started: " + cudaGetErrorString(code) + " (code " +
                    std::to_string(static_cast<int>(code)) + ")");
}

}  // namespace syncopate::cuda
