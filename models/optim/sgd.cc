// Gradient descent, plain and with momentum. The learning rate multiplies the buffer, not the
// gradient that enters it, so that a schedule takes effect at once.
// Source: Sutskever et al. 2013 in PyTorch's form (torch.optim.SGD, dampening 0).
#include <array>

#include "models/base/denormals.h"
#include "models/base/isa.h"
#include "models/optim/kernels/optimizer_kernels.h"
#include "models/optim/rules.h"

namespace syncopate {
namespace {

SgdConstants fold(const OptimizerOptions& options, const UpdateStep& step, bool decays) {
  return {.learning_rate = step.learning_rate,
          .weight_decay = decays ? static_cast<float>(options.weight_decay) : 0.0F,
          .momentum = static_cast<float>(options.momentum)};
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options)
      : options_(options), kernels_(optimizer_kernels(detect_isa())) {}

  const OptimizerOptions& options() const noexcept override { return options_; }
  std::span<const std::string_view> slot_names() const noexcept override { return {}; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    kernels_.sgd(static_cast<std::int64_t>(values.size()), values.data(), gradients.data(),
                 fold(options_, step, decays));
  }
  UpdateConstants constants(const UpdateStep& step, bool decays) const override {
    return {.rule = UpdateRule::kSgd, .sgd = fold(options_, step, decays)};
  }

 private:
  OptimizerOptions options_;
  const OptimizerKernels& kernels_;
};

class Momentum final : public Optimizer {
 public:
  explicit Momentum(const OptimizerOptions& options)
      : options_(options), kernels_(optimizer_kernels(detect_isa())) {}

  const OptimizerOptions& options() const noexcept override { return options_; }
  std::span<const std::string_view> slot_names() const noexcept override { return kSlotNames; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    const auto kernel = options_.nesterov ? kernels_.nesterov : kernels_.momentum;
    kernel(static_cast<std::int64_t>(values.size()), values.data(), gradients.data(),
           slots[0].data(), fold(options_, step, decays));
  }
  UpdateConstants constants(const UpdateStep& step, bool decays) const override {
    return {.rule = options_.nesterov ? UpdateRule::kNesterov : UpdateRule::kMomentum,
            .sgd = fold(options_, step, decays)};
  }

 private:
  static constexpr std::array<std::string_view, 1> kSlotNames = {"momentum"};

  OptimizerOptions options_;
  const OptimizerKernels& kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options) {
  return std::make_unique<Sgd>(options);
}

std::unique_ptr<Optimizer> make_momentum(const OptimizerOptions& options) {
  return std::make_unique<Momentum>(options);
}

}  // namespace syncopate
