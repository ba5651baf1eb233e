// Adam and AdamW; they differ in where weight decay enters.
// Source: Kingma and Ba 2015, algorithm 1, with epsilon outside the root and after the bias
// correction, as PyTorch has it; Loshchilov and Hutter 2019, algorithm 2, for the decoupled decay.
#include <array>
#include <cmath>

#include "models/base/denormals.h"
#include "models/base/isa.h"
#include "models/optim/kernels/optimizer_kernels.h"
#include "models/optim/rules.h"

namespace syncopate {
namespace {

enum class Decay : std::uint8_t { kIntoGradient, kDecoupled };

class Adam final : public Optimizer {
 public:
  Adam(const OptimizerOptions& options, Decay decay)
      : options_(options), decay_(decay), kernels_(optimizer_kernels(detect_isa())) {}

  const OptimizerOptions& options() const noexcept override { return options_; }
  std::span<const std::string_view> slot_names() const noexcept override { return kSlotNames; }

  void update(const UpdateStep& step, std::span<float> values, std::span<const float> gradients,
              std::span<const std::span<float>> slots, bool decays) const override {
    check_update_lengths(*this, values, gradients, slots);
    const FlushDenormals flush;
    kernels_.adam(static_cast<std::int64_t>(values.size()), values.data(), gradients.data(),
                  slots[0].data(), slots[1].data(), fold(step, decays));
  }
  UpdateConstants constants(const UpdateStep& step, bool decays) const override {
    return {.rule = UpdateRule::kAdam, .adam = fold(step, decays)};
  }

 private:
  static constexpr std::array<std::string_view, 2> kSlotNames = {"exp_avg", "exp_avg_sq"};

  // In double: 1 - 0.999^1 would keep four digits in f32.
  AdamConstants fold(const UpdateStep& step, bool decays) const {
    const double rate = step.learning_rate;
    const auto t = static_cast<double>(step.step);
    const double decay = decays ? options_.weight_decay : 0.0;
    const bool decoupled = decay_ == Decay::kDecoupled;
    return {
        .weight_decay = decoupled ? 0.0F : static_cast<float>(decay),
        .value_scale = decoupled ? static_cast<float>(1.0 - rate * decay) : 1.0F,
        .beta1 = static_cast<float>(options_.beta1),
        .beta2 = static_cast<float>(options_.beta2),
        .one_minus_beta1 = static_cast<float>(1.0 - options_.beta1),
        .one_minus_beta2 = static_cast<float>(1.0 - options_.beta2),
        .step_size = static_cast<float>(rate / (1.0 - std::pow(options_.beta1, t))),
        .denominator_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, t))),
        .epsilon = static_cast<float>(options_.epsilon),
    };
  }

  OptimizerOptions options_;
  Decay decay_;
  const OptimizerKernels& kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options) {
  return std::make_unique<Adam>(options, Decay::kIntoGradient);
}

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options) {
  return std::make_unique<Adam>(options, Decay::kDecoupled);
}

}  // namespace syncopate
