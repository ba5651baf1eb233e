// Implements Operations by cuDNN and cuBLASLt.
#include <optional>

#include "models/backend/cuda/cudnn/convolution_engines.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/device_time.h"
#include "models/backend/cuda/errors.h"
#include "models/backend/cuda/kernels/kernels.h"
#include "models/backend/cuda/library_errors.h"
#include "models/backend/cuda/matmul.h"
#include "models/backend/cuda/operations.h"
#include "models/backend/cuda/precision.h"
#include "models/backend/cuda/sums_choice.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

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

constexpr int kMostCandidates = 8;

// Times our kernel that reads a convolution's output for a batch norm, and the one that takes over
// its sums. Returns no value if there is no memory to try these kernels.
std::optional<SumsOrApart::KernelTimes> time_kernels(const ConvShape& shape, cudaStream_t stream) {
  const BatchNormShape norm{.rows = shape.n * shape.out_height() * shape.out_width(),
                            .channels = static_cast<int>(shape.out_channels)};
  const auto channels = static_cast<std::size_t>(norm.channels);
  int device = 0;
  check_cuda(cudaGetDevice(&device));
  try {
    const auto output = make_device_buffer(
        static_cast<std::size_t>(norm.rows) * channels * element_bytes(shape.type), device);
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
    plans_.emplace(plan_file);
    int device = 0;
    check_cuda(cudaGetDevice(&device));
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device));
    device_name_ = properties.name;
  }

  std::string description() const override {
    const std::size_t version = cudnnGetVersion();
    return "cuDNN " + std::to_string(version / 10000) + "." +
           std::to_string(version % 10000 / 100) + "." + std::to_string(version % 100);
  }

  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& limits) override {
    // Engine choices by time differ from run to run, so deterministic runs do not use them.
    PlanCache* const cache = plans_ && !limits.deterministic ? &*plans_ : nullptr;
    ConvolutionEngines engines = engines_of(pass, shape, limits, cache);
    const std::string engine = choose(engines, pass, shape, limits, cache);
    const bool sums = pass == ConvPass::kForwardWithSums;
    if (engine == SumsOrApart::kApart || (sums && engine.empty())) return nullptr;
    if (engine.empty()) {
      throw UnavailableError("cuDNN has no engine for the " + std::string(name(pass)) + " of " +
                             to_string(shape) +
                             (engines.refusal().empty() ? "" : " (" + engines.refusal() + ")") +
                             (limits.deterministic ? "; leave --deterministic out" : ""));
    }
    return std::make_unique<CudnnConvolution>(cudnn_.get(), engines.take(engine));
  }

  std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) override {
    return make_matmul(blas_.get(), stream_, shape, limits);
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
    return description() + ", " + device_name_ + ", " + std::string(name(pass)) + " of " +
           to_string(shape) + (limits.rounds_inputs ? "" : " unrounded") + ", " +
           std::to_string(limits.most_workspace_bytes >> 20) + " MiB";
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
