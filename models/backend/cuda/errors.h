// What the CUDA runtime answered, as an error of ours: the call's place, the code and its words.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "models/base/errors.h"

namespace syncopate::cuda {

// Throws DeviceError, and OutOfMemoryError where that is what it was; nothing on success.
void check_cuda(cudaError_t code, SourceLocation where = SourceLocation::current());

// "conv_group.cc:42"
std::string describe(SourceLocation where);

}  // namespace syncopate::cuda
