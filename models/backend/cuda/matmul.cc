#include "models/backend/cuda/matmul.h"

#include <string>

#include "models/backend/cuda/errors.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;  // bytes

struct PreferenceTraits {
  using Type = cublasLtMatmulPreference_t;
  static Type none() { return nullptr; }
  static void close(Type preference) noexcept { cublasLtMatmulPreferenceDestroy(preference); }
};

}  // namespace

// The library counts by columns: what is [rows, columns] row by row is [columns, rows] to it.
Matmul::Layout Matmul::make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), columns));
  return Layout(made);
}

Matmul::Matmul(cublasLtHandle_t handle, const MatmulShape& shape) : handle_(handle) {
  const bool is_f32 = shape.type == CUDA_R_32F;
  const cublasComputeType_t compute =
      is_f32 && shape.rounds_inputs ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t operation = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F));
  operation_.reset(operation);
  // By columns the product is c' = op(b)' op(a)': b comes first, and op stays what it is.
  const cublasOperation_t first_op = shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second_op = shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  check_cublas(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &first_op,
                                              sizeof first_op));
  check_cublas(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &second_op,
                                              sizeof second_op));
  first_ = shape.transpose_b ? make_layout(shape.type, shape.n, shape.k)
                             : make_layout(shape.type, shape.k, shape.n);
  second_ = shape.transpose_a ? make_layout(shape.type, shape.k, shape.m)
                              : make_layout(shape.type, shape.m, shape.k);
  result_ = make_layout(shape.c_type, shape.m, shape.n);

  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made));
  const UniqueHandle<PreferenceTraits> preference(made);
  check_cublas(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &kMostWorkspace, sizeof kMostWorkspace));
  if (shape.deterministic) {
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE |
                                  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                  CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    check_cublas(cublasLtMatmulPreferenceSetAttribute(
        made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes));
  }
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, operation, first_.get(), second_.get(), result_.get(),
                                     result_.get(), made, 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0)) {
    throw UnavailableError("cuBLAS has no algorithm for a product of [" + std::to_string(shape.m) +
                           ", " + std::to_string(shape.k) + "] and [" + std::to_string(shape.k) +
                           ", " + std::to_string(shape.n) + "]");
  }
  check_cublas(status);
  algorithm_ = found.algo;
  workspace_bytes_ = found.workspaceSize;
}

void Matmul::run(const void* a, const void* b, void* c, void* workspace,
                 cudaStream_t stream) const {
  const float one = 1.0F;
  const float zero = 0.0F;
  check_cublas(cublasLtMatmul(handle_, operation_.get(), &one, b, first_.get(), a, second_.get(),
                              &zero, c, result_.get(), c, result_.get(), &algorithm_, workspace,
                              workspace_bytes_, stream));
}

}  // namespace syncopate::cuda
