// Implements the interface Backend for one GPU.
#pragma once

#include <memory>

#include "models/backend/backend.h"
#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// Makes the backend of one GPU. plan: makes the Operations object, which chooses the algorithms of
// the backend's convolutions and matrix products. Throws DeviceError.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options,
                                           const PlanOperations& plan);

}  // namespace syncopate::cuda
