#include "models/backend/cuda/cuda_backend.h"

#include <array>

#include "models/backend/cuda/cuda_model.h"
#include "models/backend/cuda/errors.h"
#include "models/base/errors.h"
#include "models/optim/update_range.h"

namespace syncopate::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(const BackendOptions& options, const PlanOperations& plan)
      : options_(options), handles_(options.device.index, plan) {}

  Device device() const noexcept override { return options_.device; }

  std::string description() const override {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, options_.device.index));
    int runtime = 0;
    check_cuda(cudaRuntimeGetVersion(&runtime));
    return to_string(options_.device) + ", " + properties.name + ", " +
           std::string(name(options_.precision)) + ", CUDA " + std::to_string(runtime / 1000) +
           "." + std::to_string(runtime / 10 % 100) + ", " + handles_.operations->description();
  }

  std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena, StateBlock& state,
                                 const CompileOptions& options) override {
    use_device(options_.device.index);
    return std::make_unique<CudaModel>(handles_, options_, graph, arena, state, options);
  }

  // The arena is on the host, and so is the update.
  void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
              std::span<const Tensor> slots, Bucket range) override {
    const auto window = [&](const Tensor& block) {
      return block.f32().subspan(static_cast<std::size_t>(range.begin),
                                 static_cast<std::size_t>(range.end - range.begin));
    };
    std::array<std::span<float>, kMaxSlots> spans;
    check(slots.size() <= spans.size(), "no optimizer has more slots than that");
    for (std::size_t s = 0; s < slots.size(); ++s) spans[s] = window(slots[s]);
    update_range(optimizer, step, arena.layout(), range, window(arena.values()),
                 window(arena.gradients()), std::span(spans).first(slots.size()));
  }

 private:
  const BackendOptions options_;
  ReplicaHandles handles_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options,
                                           const PlanOperations& plan) {
  return std::make_unique<CudaBackend>(options, plan);
}

}  // namespace syncopate::cuda
