// One GPU as a Backend.
#pragma once

#include <memory>

#include "models/backend/backend.h"

namespace syncopate::cuda {

// Throws UnavailableError for what is not there yet, DeviceError.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace syncopate::cuda
