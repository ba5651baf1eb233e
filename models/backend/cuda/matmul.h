// Matrix products by cuBLASLt, on row-major matrices.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "models/base/unique_handle.h"

namespace syncopate::cuda {

// c [m, n] = op(a) op(b); op transposes where asked for: a is then [k, m], b [n, k]. a and b have
// `type`, c has `c_type`; sums are f32.
struct MatmulShape {
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  cudaDataType_t type = CUDA_R_32F;
  cudaDataType_t c_type = CUDA_R_32F;
  bool rounds_inputs = true;   // f32 may be rounded to TF32 for the tensor cores
  bool deterministic = false;  // no sums in the order of arrival
};

// One product with the algorithm that the library recommends. One thread only.
class Matmul {
 public:
  // Throws UnavailableError where there is no algorithm, DeviceError.
  Matmul(cublasLtHandle_t handle, const MatmulShape& shape);

  std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  void run(const void* a, const void* b, void* c, void* workspace, cudaStream_t stream) const;

 private:
  struct OperationTraits {
    using Type = cublasLtMatmulDesc_t;
    static Type none() { return nullptr; }
    static void close(Type operation) noexcept { cublasLtMatmulDescDestroy(operation); }
  };
  struct LayoutTraits {
    using Type = cublasLtMatrixLayout_t;
    static Type none() { return nullptr; }
    static void close(Type layout) noexcept { cublasLtMatrixLayoutDestroy(layout); }
  };
  using Layout = UniqueHandle<LayoutTraits>;
  static Layout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns);

  cublasLtHandle_t handle_;
  UniqueHandle<OperationTraits> operation_;
  Layout first_;   // b, seen by columns
  Layout second_;  // a
  Layout result_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_bytes_ = 0;
};

}  // namespace syncopate::cuda
