// Turns error codes of the CUDA runtime into exceptions that carry the place of the call, the code
// and its description.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "models/base/errors.h"

namespace syncopate::cuda {

// Checks the result of a CUDA call: throws DeviceError, or OutOfMemoryError if memory ran out.
void check_cuda(cudaError_t code, SourceLocation where = SourceLocation::current());

// Returns the file and line of a call as text, such as "conv_group.cc:42".
std::string describe(SourceLocation where);

}  // namespace syncopate::cuda
