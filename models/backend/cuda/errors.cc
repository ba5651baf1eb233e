#include "models/backend/cuda/errors.h"

#include <filesystem>

#include "models/base/errors.h"

namespace syncopate::cuda {

std::string describe(SourceLocation where) {
  return std::filesystem::path(where.file).filename().string() + ":" + std::to_string(where.line);
}

void check_cuda(cudaError_t code, SourceLocation where) {
  if (code == cudaSuccess) return;
  const std::string said = "CUDA error " + std::to_string(code) + " (" + cudaGetErrorName(code) +
                           ": " + cudaGetErrorString(code) + ") at " + describe(where);
  if (code == cudaErrorMemoryAllocation) {
    throw OutOfMemoryError(said + "; choose a smaller batch or a smaller network");
  }
  throw DeviceError(said);
}

}  // namespace syncopate::cuda
