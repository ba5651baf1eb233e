// Turns error codes of the CUDA runtime into exceptions that carry the place of the call, the code
// and its description.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "models/base/errors.h"

namespace syncopate::cuda {

// Throws DeviceError, or OutOfMemoryError if memory ran out; returns on success.
void check_cuda(cudaError_t code, SourceLocation where = SourceLocation::current());

// Returns file and line, such as "conv_group.cc:42".
std::string describe(SourceLocation where);

}  // namespace syncopate::cuda
