#include "models/backend/cuda/cublas_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/errors.h"
#include "models/base/unique_handle.h"

namespace syncopate::cuda {
namespace {

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
struct PreferenceTraits {
  using Type = cublasLtMatmulPreference_t;
  static Type none() { return nullptr; }
  static void close(Type preference) noexcept { cublasLtMatmulPreferenceDestroy(preference); }
};

// The alignment in bytes that cuBLASLt is promised for operands. Parameters and their copies lie on
// multiples of 128 bytes at least; without a promise cuBLASLt would assume 256.
constexpr std::uint32_t kOperandAlignment = 16;
constexpr std::int64_t kMostWorkspace = std::int64_t{32} << 20;  // bytes

cudaDataType_t type_of(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return CUDA_R_16BF;
    case Precision::kF16:
      return CUDA_R_16F;
    case Precision::kF32:
      break;
  }
  return CUDA_R_32F;
}

// cuBLASLt sees c transposed: the library's rows are our columns, and our a is the second factor.
cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kRowSums:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::kNone:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// cuBLASLt stores matrices by columns, so our row-major [rows, columns] is its [columns, rows].
// `batch` matrices lie one behind the other.
Layout make_layout(Precision type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), columns));
  Layout layout(made);
  if (batch == 1) return layout;
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t distance = rows * columns;
  check_cublas(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof count));
  check_cublas(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &distance, sizeof distance));
  return layout;
}

class Matmul final : public Product {
 public:
  Matmul(cublasLtHandle_t handle, cudaStream_t stream, const ProductShape& shape,
         const PlanLimits& limits)
      : handle_(handle),
        stream_(stream),
        // Seen by columns the matrix product is c' = op(b)' op(a)': b comes first, and both ops are
        // unchanged.
        first_(shape.transpose_b ? make_layout(shape.type, shape.n, shape.k, shape.batch)
                                 : make_layout(shape.type, shape.k, shape.n, shape.batch)),
        second_(shape.transpose_a ? make_layout(shape.type, shape.k, shape.m, shape.batch)
                                  : make_layout(shape.type, shape.m, shape.k, shape.batch)),
        result_(make_layout(shape.result_type, shape.m, shape.n, shape.batch)) {
    const bool is_tf32 = shape.type == Precision::kF32 && limits.rounds_inputs;
    cublasLtMatmulDesc_t made = nullptr;
    check_cublas(cublasLtMatmulDescCreate(
        &made, is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    operation_.reset(made);
    transpose(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b);
    transpose(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(shape.epilogue));
    if (shape.epilogue != Epilogue::kNone) {
      has_vector_ = true;
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(shape.result_type));
      // The address of a vector is not known when an algorithm is chosen, but its alignment is, and
      // cuBLASLt's heuristic may inspect it.
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(kOperandAlignment));
    }
    choose_algorithm(shape, limits);
  }

  std::size_t workspace_bytes() const noexcept override { return workspace_bytes_; }

  void run(const ProductArrays& arrays) override {
    const float one = 1.0F;
    const float zero = 0.0F;
    if (has_vector_) {
      // cuBLASLt uses one attribute for both vectors of an epilogue: it reads a bias from that
      // address or writes row sums to it.
      const void* const vector = arrays.bias != nullptr ? arrays.bias : arrays.row_sums;
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
    }
    check_cublas(cublasLtMatmul(handle_, operation_.get(), &one, arrays.b, first_.get(), arrays.a,
                                second_.get(), &zero, arrays.c, result_.get(), arrays.c,
                                result_.get(), &algorithm_, arrays.workspace, workspace_bytes_,
                                stream_));
  }

 private:
  void transpose(cublasLtMatmulDescAttributes_t which, bool wanted) {
    set(which, wanted ? CUBLAS_OP_T : CUBLAS_OP_N);
  }

  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t which, const Value& value) {
    check_cublas(cublasLtMatmulDescSetAttribute(operation_.get(), which, &value, sizeof value));
  }

  void choose_algorithm(const ProductShape& shape, const PlanLimits& limits) {
    cublasLtMatmulPreference_t made = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&made));
    const UniqueHandle<PreferenceTraits> preference(made);
    const auto most =
        static_cast<std::uint64_t>(std::min(limits.most_workspace_bytes, kMostWorkspace));
    check_cublas(cublasLtMatmulPreferenceSetAttribute(
        made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
    const std::uint32_t alignment = kOperandAlignment;
    for (const auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      check_cublas(
          cublasLtMatmulPreferenceSetAttribute(made, operand, &alignment, sizeof alignment));
    }
    if (limits.deterministic) {
      const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE |
                                    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
      check_cublas(cublasLtMatmulPreferenceSetAttribute(
          made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes));
    }
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, operation_.get(), first_.get(), second_.get(),
                                       result_.get(), result_.get(), made, 1, &found, &count);
    const bool is_refused =
        status == CUBLAS_STATUS_NOT_SUPPORTED ||
        // cuBLASLt returns CUBLAS_STATUS_INVALID_VALUE for an epilogue that it does not support.
        (has_vector_ && status == CUBLAS_STATUS_INVALID_VALUE);
    if (is_refused || (status == CUBLAS_STATUS_SUCCESS && count == 0)) {
      throw UnavailableError("cuBLAS has no algorithm for a product of " + to_string(shape));
    }
    check_cublas(status);
    algorithm_ = found.algo;
    workspace_bytes_ = found.workspaceSize;
  }

  cublasLtHandle_t handle_;
  cudaStream_t stream_;
  UniqueHandle<OperationTraits> operation_;
  Layout first_;   // layout of our b: cuBLASLt's first factor (column-major)
  Layout second_;  // layout of our a: cuBLASLt's second factor
  Layout result_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_bytes_ = 0;
  bool has_vector_ = false;
};

}  // namespace

void check_cublas(cublasStatus_t code, SourceLocation where) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuBLAS error {} ({}) at {}", static_cast<int>(code),
                                cublasLtGetStatusString(code), describe(where)));
}

std::unique_ptr<Product> make_cublas_product(cublasLtHandle_t handle, cudaStream_t stream,
                                             const ProductShape& shape, const PlanLimits& limits) {
  return std::make_unique<Matmul>(handle, stream, shape, limits);
}

}  // namespace syncopate::cuda
