#include "models/backend/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/cuda_model.h"
#include "models/backend/cuda/device.h"
#include "models/base/errors.h"
#include "models/optim/optimizer.h"

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
    return fmt::format("{}, {}, {}, CUDA {}.{}, {}", to_string(options_.device), properties.name,
                       name(options_.precision), runtime / 1000, runtime / 10 % 100,
                       handles_.operations->description());
  }

  std::unique_ptr<Model> compile(const Graph& graph, ParameterArena& arena, StateBlock& state,
                                 const CompileOptions& options) override {
    use_device(options_.device.index);
    std::shared_ptr<DeviceVariables> variables = variables_of(arena);
    if (variables == nullptr) {
      std::erase_if(variables_, [](const auto& entry) { return entry.second.expired(); });
      variables = std::make_shared<DeviceVariables>(arena, state, options_);
      variables_[&arena] = variables;
    }
    if (options.updates_on_device) variables->keep_updates();
    BucketSums* sums = nullptr;
    if (options.device_collective != nullptr) {
      check(options.updates_on_device, "what is summed on the device is used there");
      sums = dynamic_cast<BucketSums*>(options.device_collective);
      check(sums != nullptr, "sums are made by the module that computes");
      sums->attach(variables->gradient_arena(), arena.buckets());
      sums_[&arena] = sums;
    }
    return std::make_unique<CudaModel>(handles_, options_, graph, arena, std::move(variables), sums,
                                       options);
  }

  void to_host(ParameterArena& arena, std::span<const Tensor> slots) override {
    use_device(options_.device.index);
    const auto variables = variables_of(arena);
    if (variables != nullptr) variables->to_host(slots, handles_.compute.get());
    if (BucketSums* const sums = sums_of(arena)) sums->check();
  }

  std::optional<LossScaleState> loss_scale(const ParameterArena& arena) override {
    const auto variables = variables_of(arena);
    if (variables == nullptr) return std::nullopt;
    use_device(options_.device.index);
    const auto state = variables->loss_scale_state(handles_.compute.get());
    if (BucketSums* const sums = sums_of(arena))
      sums->check();  // throws if the wait ended because the sums were aborted
    return state;
  }
  void set_loss_scale(const ParameterArena& arena, const LossScaleState& state) override {
    const auto variables = variables_of(arena);
    if (variables == nullptr) return;
    use_device(options_.device.index);
    check_cuda(cudaStreamSynchronize(handles_.compute.get()));
    variables->set_loss_scale_state(state);
  }

  void clip_gradients(ParameterArena& arena, double max_norm) override {
    const auto variables = variables_of(arena);
    if (variables == nullptr || !variables->keeps_updates()) {
      return Backend::clip_gradients(arena, max_norm);
    }
    use_device(options_.device.index);
    if (BucketSums* const sums = sums_of(arena)) sums->finish(handles_.compute.get());
    are_sums_finished_ = true;
    variables->clip_gradients(max_norm, handles_.compute.get());
  }

  void update(const Optimizer& optimizer, const UpdateStep& step, ParameterArena& arena,
              std::span<const Tensor> slots, Bucket range) override {
    const auto variables = variables_of(arena);
    if (variables != nullptr && variables->keeps_updates()) {
      check(range == Bucket({0, arena.layout().total()}), "the device updates the whole arena");
      use_device(options_.device.index);
      BucketSums* const sums = sums_of(arena);
      if (!std::exchange(are_sums_finished_, false) && sums != nullptr) {
        sums->finish(handles_.compute.get());
      }
      return variables->update(optimizer, step, slots, handles_.compute.get());
    }
    // Without updates_on_device the host sums the gradients, so it also applies the optimizer.
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
  std::shared_ptr<DeviceVariables> variables_of(const ParameterArena& arena) const {
    const auto found = variables_.find(&arena);
    return found == variables_.end() ? nullptr : found->second.lock();
  }
  BucketSums* sums_of(const ParameterArena& arena) const {
    const auto found = sums_.find(&arena);
    return found == sums_.end() ? nullptr : found->second;
  }

  const BackendOptions options_;
  ReplicaHandles handles_;
  // The values and gradients on the device, by host arena: one entry for the trained arena, others
  // for copies that are evaluated. The models compiled for an arena own its entry together.
  std::map<const ParameterArena*, std::weak_ptr<DeviceVariables>> variables_;
  // the sums of gradients over the replicas, by arena; no entry if there is one replica
  std::map<const ParameterArena*, BucketSums*> sums_;
  bool are_sums_finished_ = false;  // by clip_gradients(), in the step under way
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options,
                                           const PlanOperations& plan) {
  return std::make_unique<CudaBackend>(options, plan);
}

}  // namespace syncopate::cuda
