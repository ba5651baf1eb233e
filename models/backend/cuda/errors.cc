#include "models/backend/cuda/errors.h"

#include <array>
#include <filesystem>
#include <string>

#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

std::string place(SourceLocation where) {
  return std::filesystem::path(where.file).filename().string() + ":" + std::to_string(where.line);
}

}  // namespace

void check_cuda(cudaError_t code, SourceLocation where) {
  if (code == cudaSuccess) return;
  const std::string said = "CUDA error " + std::to_string(code) + " (" + cudaGetErrorName(code) +
                           ": " + cudaGetErrorString(code) + ") at " + place(where);
  if (code == cudaErrorMemoryAllocation) {
    throw OutOfMemoryError(said + "; choose a smaller batch or a smaller network");
  }
  throw DeviceError(said);
}

void check_cudnn(cudnnStatus_t code, SourceLocation where) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> more{};
  cudnnGetLastErrorString(more.data(), more.size());
  throw DeviceError("cuDNN error " + std::to_string(code) + " (" + cudnnGetErrorString(code) +
                    (more.front() == '\0' ? "" : ": " + std::string(more.data())) + ") at " +
                    place(where));
}

void check_cublas(cublasStatus_t code, SourceLocation where) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError("cuBLAS error " + std::to_string(code) + " (" + cublasLtGetStatusString(code) +
                    ") at " + place(where));
}

}  // namespace syncopate::cuda
