// Implements Operations by cuDNN and cuBLASLt.
#include <cublasLt.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "models/backend/cuda/cublas_product.h"
#include "models/backend/cuda/cudnn/convolution_engines.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/operations.h"
#include "models/base/errors.h"
#include "models/base/unique_handle.h"

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
  CudnnConvolution(cudnnHandle_t handle, std::shared_ptr<const ConvPlan> plan)
      : handle_(handle), plan_(std::move(plan)) {}
  std::size_t workspace_bytes() const noexcept override {
    return static_cast<std::size_t>(plan_->workspace_bytes());
  }
  void run(const ConvArrays& arrays) override { plan_->run(handle_, arrays); }

 private:
  cudnnHandle_t handle_;
  std::shared_ptr<const ConvPlan> plan_;
};

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
    target_ = {.handle = cudnn, .stream = stream};
    if (plan_file.empty()) return;
    int device = 0;
    check_cuda(cudaGetDevice(&device));
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device));
    target_.name = fmt::format("{}, {}", description(), properties.name);
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    cache_.emplace(plan_file, fmt::format("{}.{:x}.{:x}.{:x}", host.data(), properties.pciDomainID,
                                          properties.pciBusID, properties.pciDeviceID));
  }

  std::string description() const override {
    const std::size_t version = cudnnGetVersion();
    return fmt::format("cuDNN {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
  }

  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& limits) override {
    const Key key{pass, to_string(shape), limits.deterministic, limits.rounds_inputs,
                  limits.measures};
    if (apart_.contains(key)) return nullptr;
    std::shared_ptr<const ConvPlan> shared = plans_[key].lock();
    if (shared == nullptr) {
      std::erase_if(plans_, [](const auto& entry) { return entry.second.expired(); });
      shared = plan(pass, shape, limits);
      if (shared == nullptr) {
        apart_.insert(key);
        return nullptr;
      }
      plans_[key] = shared;
    }
    return std::make_unique<CudnnConvolution>(cudnn_.get(), std::move(shared));
  }

  std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) override {
    return make_cublas_product(blas_.get(), stream_, shape, limits);
  }

 private:
  using Key = std::tuple<ConvPass, std::string, bool, bool, bool>;

  // Returns null for kForwardWithSums if a separate kernel should compute the sums.
  std::shared_ptr<const ConvPlan> plan(ConvPass pass, const ConvShape& shape,
                                       const PlanLimits& limits) {
    // Engine choices by time differ from run to run, so deterministic runs do not use them.
    PlanCache* const cache = cache_ && !limits.deterministic ? &*cache_ : nullptr;
    ConvolutionEngines engines(pass, shape, limits, target_, cache);
    std::optional<ConvPlan> chosen = engines.choose();
    if (chosen) return std::make_shared<const ConvPlan>(std::move(*chosen));
    if (pass == ConvPass::kForwardWithSums) return nullptr;
    throw UnavailableError(
        fmt::format("cuDNN has no engine for the {} of {}{}{}", name(pass), to_string(shape),
                    engines.refusal().empty() ? "" : fmt::format(" ({})", engines.refusal()),
                    limits.deterministic ? "; leave --deterministic out" : ""));
  }

  cudaStream_t stream_;
  UniqueHandle<CudnnTraits> cudnn_;
  UniqueHandle<BlasTraits> blas_;
  EngineTarget target_;
  std::optional<PlanCache> cache_;
  // The plans in use. Equal layers share them, also layers of other programs with the same number
  // of samples.
  std::map<Key, std::weak_ptr<const ConvPlan>> plans_;
  std::set<Key> apart_;  // a kernel of ours computes the sums of these convolutions
};

}  // namespace

std::unique_ptr<Operations> make_nvidia_operations(cudaStream_t stream,
                                                   const std::filesystem::path& plan_file) {
  return std::make_unique<NvidiaOperations>(stream, plan_file);
}

}  // namespace syncopate::cuda
