// What cuDNN and cuBLAS answered, as errors of ours.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include "models/base/errors.h"

namespace syncopate::cuda {

// Each throws DeviceError; nothing on success.
void check_cudnn(cudnnStatus_t code, SourceLocation where = SourceLocation::current());
void check_cublas(cublasStatus_t code, SourceLocation where = SourceLocation::current());

}  // namespace syncopate::cuda
