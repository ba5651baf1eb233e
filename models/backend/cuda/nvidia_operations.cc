// Implements Operations by cuDNN and cuBLASLt.
#include <cublasLt.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "models/backend/cuda/cudnn/convolution_engines.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/device_speed.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/operations.h"
#include "models/backend/cuda/precision.h"
#include "models/base/errors.h"
#include "models/base/unique_handle.h"

namespace syncopate::cuda {
namespace {

// Throws DeviceError for a status of cuBLAS other than success.
void check_cublas(cublasStatus_t code, SourceLocation where = SourceLocation::current()) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuBLAS error {} ({}) at {}", static_cast<int>(code),
                                cublasLtGetStatusString(code), describe(where)));
}

struct CudnnTraits {
  using Type = cudnnHandle_t;
  static Type none() { return nullptr; }
  static void close(Type handle) noexcept { cudnnDestroy(handle); }
};

struct BlasTraits {
  using Type = cublasLtHandle_t;
  static Type none() { return nullptr; }
  static void close(Type handle) noexcept { cublasLtDestroy(handle); }
};

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(cudnnHandle_t handle, ConvPlan plan) : handle_(handle), plan_(std::move(plan)) {}
  std::size_t workspace_bytes() const noexcept override {
    return static_cast<std::size_t>(plan_.workspace_bytes());
  }
  void run(const ConvArrays& arrays) override { plan_.run(handle_, arrays); }

 private:
  cudnnHandle_t handle_;
  ConvPlan plan_;
};

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
Layout make_layout(Precision type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), columns));
  return Layout(made);
}

// Computes a matrix product by cuBLASLt on row-major matrices, with the algorithm that the library
// recommends. Throws UnavailableError if there is none, DeviceError.
class Matmul final : public Product {
 public:
  Matmul(cublasLtHandle_t handle, cudaStream_t stream, const ProductShape& shape,
         const PlanLimits& limits)
      : handle_(handle),
        stream_(stream),
        // Seen by columns the matrix product is c' = op(b)' op(a)': b comes first, and both ops are
        // unchanged.
        first_(shape.transpose_b ? make_layout(shape.type, shape.n, shape.k)
                                 : make_layout(shape.type, shape.k, shape.n)),
        second_(shape.transpose_a ? make_layout(shape.type, shape.k, shape.m)
                                  : make_layout(shape.type, shape.m, shape.k)),
        result_(make_layout(shape.result_type, shape.m, shape.n)) {
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

constexpr int kMostCandidates = 24;

// Times the two kernels with which a batch norm gets its forward sums: batch_norm_sums reads the
// convolution's output, batch_norm_shift_sums converts sums that the convolution has computed.
// Returns no value if the device has no memory for the measurement.
std::optional<SumsOrApart::KernelTimes> time_kernels(const ConvShape& shape, cudaStream_t stream) {
  const BatchNormShape norm{.rows = shape.n * shape.out_height() * shape.out_width(),
                            .channels = static_cast<int>(shape.out_channels)};
  const auto channels = static_cast<std::size_t>(norm.channels);
  int device = 0;
  check_cuda(cudaGetDevice(&device));
  try {
    const auto output = make_device_buffer(
        static_cast<std::size_t>(norm.rows) * channels * element_bytes(shape.type), device);
    fill_with_random_numbers(*output, shape.type);
    const auto per_channel = make_device_buffer(channels * sizeof(float), device);
    auto* const floats = reinterpret_cast<float*>(per_channel->data());
    const auto sums = make_device_buffer((2 * channels + 1) * sizeof(double), device);
    const auto scratch =
        make_device_buffer(static_cast<std::size_t>(batch_norm_scratch(norm)), device);
    auto* const doubles = reinterpret_cast<double*>(sums->data());
    const auto summing = with_type(shape.type, [&]<typename T>() {
      return time_on_device(stream, kTimedRuns, [&] {
        batch_norm_sums(norm, reinterpret_cast<const T*>(output->data()), floats, doubles,
                        scratch->data(), stream);
      });
    });
    const auto shifting = time_on_device(stream, kTimedRuns, [&] {
      batch_norm_shift_sums(norm, floats, floats, floats, doubles, stream);
    });
    return SumsOrApart::KernelTimes{summing, shifting};
  } catch (const DeviceError&) {
    cudaGetLastError();  // clears the error, else the next call reports it
    return std::nullopt;
  }
}

class NvidiaOperations final : public Operations {
 public:
  NvidiaOperations(cudaStream_t stream, const std::filesystem::path& plan_file) : stream_(stream) {
    cudnnHandle_t cudnn = nullptr;
    check_cudnn(cudnnCreate(&cudnn));
    cudnn_.reset(cudnn);
    check_cudnn(cudnnSetStream(cudnn, stream));
    cublasLtHandle_t blas = nullptr;
    check_cublas(cublasLtCreate(&blas));
    blas_.reset(blas);
    if (plan_file.empty()) return;
    int device = 0;
    check_cuda(cudaGetDevice(&device));
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device));
    device_name_ = properties.name;
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    plans_.emplace(plan_file, fmt::format("{}.{:x}.{:x}.{:x}", host.data(), properties.pciDomainID,
                                          properties.pciBusID, properties.pciDeviceID));
  }

  std::string description() const override {
    const std::size_t version = cudnnGetVersion();
    return fmt::format("cuDNN {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
  }

  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& limits) override {
    // Engine choices by time differ from run to run, so deterministic runs do not use them.
    PlanCache* cache = plans_ && !limits.deterministic ? &*plans_ : nullptr;
    if (!limits.measures && cache != nullptr && !cache->find(key_of(pass, shape, limits))) {
      cache = nullptr;
    }
    ConvolutionEngines engines = engines_of(pass, shape, limits, cache);
    const std::string engine = choose(engines, pass, shape, limits, cache);
    const bool sums = pass == ConvPass::kForwardWithSums;
    if (engine == SumsOrApart::kApart || (sums && engine.empty())) return nullptr;
    if (engine.empty()) {
      throw UnavailableError(
          fmt::format("cuDNN has no engine for the {} of {}{}{}", name(pass), to_string(shape),
                      engines.refusal().empty() ? "" : fmt::format(" ({})", engines.refusal()),
                      limits.deterministic ? "; leave --deterministic out" : ""));
    }
    return std::make_unique<CudnnConvolution>(cudnn_.get(), engines.take(engine));
  }

  std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) override {
    return std::make_unique<Matmul>(blas_.get(), stream_, shape, limits);
  }

 private:
  ConvolutionEngines engines_of(ConvPass pass, const ConvShape& shape, const PlanLimits& limits,
                                const PlanCache* cache) const {
    return {pass, shape, limits, cudnn_.get(), stream_, cache == nullptr ? 1 : kMostCandidates};
  }

  std::string choose(ConvolutionEngines& engines, ConvPass pass, const ConvShape& shape,
                     const PlanLimits& limits, PlanCache* cache) const {
    const std::string key = key_of(pass, shape, limits);
    if (pass != ConvPass::kForwardWithSums || cache == nullptr) {
      return choose_engine(engines, cache, key);
    }
    ConvolutionEngines plain = engines_of(ConvPass::kForward, shape, limits, cache);
    SumsOrApart both(engines, plain, cache, key_of(ConvPass::kForward, shape, limits),
                     [&] { return time_kernels(shape, stream_); });
    return choose_engine(both, cache, key);
  }

  // Returns an operation's key, which contains everything its fastest engine may depend on.
  std::string key_of(ConvPass pass, const ConvShape& shape, const PlanLimits& limits) const {
    return fmt::format("{}, {}, {} of {}{}, {} MiB", description(), device_name_, name(pass),
                       to_string(shape), limits.rounds_inputs ? "" : " unrounded",
                       limits.most_workspace_bytes >> 20);
  }

  cudaStream_t stream_;
  std::optional<PlanCache> plans_;
  std::string device_name_;
  UniqueHandle<CudnnTraits> cudnn_;
  UniqueHandle<BlasTraits> blas_;
};

}  // namespace

std::unique_ptr<Operations> make_nvidia_operations(cudaStream_t stream,
                                                   const std::filesystem::path& plan_file) {
  return std::make_unique<NvidiaOperations>(stream, plan_file);
}

}  // namespace syncopate::cuda
