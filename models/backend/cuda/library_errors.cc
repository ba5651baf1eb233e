#include "models/backend/cuda/library_errors.h"

#include <array>
#include <string>

#include "models/backend/cuda/errors.h"
#include "models/base/errors.h"

namespace syncopate::cuda {

void check_cudnn(cudnnStatus_t code, SourceLocation where) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> more{};
  cudnnGetLastErrorString(more.data(), more.size());
  throw DeviceError("cuDNN error " + std::to_string(code) + " (" + cudnnGetErrorString(code) +
                    (more.front() == '\0' ? "" : ": " + std::string(more.data())) + ") at " +
                    describe(where));
}

void check_cublas(cublasStatus_t code, SourceLocation where) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError("cuBLAS error " + std::to_string(code) + " (" + cublasLtGetStatusString(code) +
                    ") at " + describe(where));
}

}  // namespace syncopate::cuda
