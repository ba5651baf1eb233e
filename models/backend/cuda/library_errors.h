// Turns status codes of cuDNN and cuBLAS into exceptions.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include "models/base/errors.h"

namespace syncopate::cuda {

// These functions throw DeviceError, and return on success.
void check_cudnn(cudnnStatus_t code, SourceLocation where = SourceLocation::current());
void check_cublas(cublasStatus_t code, SourceLocation where = SourceLocation::current());

}  // namespace syncopate::cuda
