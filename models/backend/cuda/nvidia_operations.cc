// cuDNN and cuBLASLt behind one door.
#include "models/backend/cuda/cudnn/convolution.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/library_errors.h"
#include "models/backend/cuda/matmul.h"
#include "models/backend/cuda/operations.h"
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
  void run(void* x, void* w, void* y, void* workspace) override {
    plan_.run(handle_, x, w, y, workspace);
  }

 private:
  cudnnHandle_t handle_;
  ConvPlan plan_;
};

class NvidiaOperations final : public Operations {
 public:
  explicit NvidiaOperations(cudaStream_t stream) : stream_(stream) {
    cudnnHandle_t cudnn = nullptr;
    check_cudnn(cudnnCreate(&cudnn));
    cudnn_.reset(cudnn);
    check_cudnn(cudnnSetStream(cudnn, stream));
    cublasLtHandle_t blas = nullptr;
    check_cublas(cublasLtCreate(&blas));
    blas_.reset(blas);
  }

  std::string description() const override {
    const std::size_t version = cudnnGetVersion();
    return "cuDNN " + std::to_string(version / 10000) + "." +
           std::to_string(version % 10000 / 100) + "." + std::to_string(version % 100);
  }

  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& limits) override {
    ConvOffers offers = plan_convolution(pass, shape, PlanTarget(cudnn_.get()), limits, 1);
    if (offers.plans.empty()) {
      throw UnavailableError("cuDNN has no engine for the " + std::string(name(pass)) + " of " +
                             to_string(shape) +
                             (limits.deterministic ? "; leave --deterministic out" : ""));
    }
    return std::make_unique<CudnnConvolution>(cudnn_.get(), std::move(offers.plans.front()));
  }

  std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) override {
    return make_matmul(blas_.get(), stream_, shape, limits);
  }

 private:
  cudaStream_t stream_;
  UniqueHandle<CudnnTraits> cudnn_;
  UniqueHandle<BlasTraits> blas_;
};

}  // namespace

std::unique_ptr<Operations> make_nvidia_operations(cudaStream_t stream) {
  return std::make_unique<NvidiaOperations>(stream);
}

}  // namespace syncopate::cuda
