// What a CUDA library answered, as an error of ours: the call's place, the code and its words.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "models/base/source_location.h"

namespace syncopate::cuda {

// Each throws DeviceError, and OutOfMemoryError where that is what it was; nothing on success.
void check_cuda(cudaError_t code, SourceLocation where = SourceLocation::current());
void check_cudnn(cudnnStatus_t code, SourceLocation where = SourceLocation::current());
void check_cublas(cublasStatus_t code, SourceLocation where = SourceLocation::current());

}  // namespace syncopate::cuda
