// Computes matrix products by cuBLASLt on row-major matrices.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// Plans a matrix product with the algorithm that cuBLASLt recommends. Throws UnavailableError if
// there is none, DeviceError.
std::unique_ptr<Product> make_matmul(cublasLtHandle_t handle, cudaStream_t stream,
                                     const ProductShape& shape, const PlanLimits& limits);

}  // namespace syncopate::cuda
