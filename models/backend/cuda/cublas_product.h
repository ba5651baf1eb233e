// Matrix products by cuBLASLt.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// Throws DeviceError unless the status of cuBLAS is success.
void check_cublas(cublasStatus_t code, SourceLocation where = SourceLocation::current());

// Plans a product of row-major matrices with the algorithm that cuBLASLt recommends. The product
// runs on `stream`; the handle must outlive the product. Throws UnavailableError if there is no
// algorithm, and DeviceError.
std::unique_ptr<Product> make_cublas_product(cublasLtHandle_t handle, cudaStream_t stream,
                                             const ProductShape& shape, const PlanLimits& limits);

}  // namespace syncopate::cuda
