// Turns status codes of cuDNN and cuBLAS into exceptions.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include "models/base/errors.h"

namespace syncopate::cuda {

// check_cudnn() and check_cublas() return on success and throw DeviceError otherwise.
void check_cudnn(cudnnStatus_t code, SourceLocation where = SourceLocation::current());
void check_cublas(cublasStatus_t code, SourceLocation where = SourceLocation::current());

}  // namespace syncopate::cuda
