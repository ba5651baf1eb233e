// The update rules of the optimizers. An update treats each element independently, so a slice and
// the whole arena, a device and a shard give the same bits. The caller owns all memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/optim/kernels/optimizer_kernels.h"

namespace syncopate {

struct OptimizerOptions {
  std::string name = "sgd";  // a row of optimizers()
  // Doubles, because 1 - beta2 computed from an f32 0.999 has a relative error of 5e-5.
  double momentum = 0.9;  // of momentum: in [0, 1)
  bool nesterov = false;  // of momentum
  double beta1 = 0.9;     // of adam and adamw: in [0, 1)
  double beta2 = 0.999;   // of adam and adamw: in [0, 1)
  double epsilon = 1e-8;  // of adam and adamw: positive
  // Times the value, added to the gradient; adamw subtracts it from the value instead. Not
  // negative.
  double weight_decay = 0.0;
};

// The inputs of an update that change from step to step.
struct UpdateStep {
  float learning_rate = 0.0F;
  std::int64_t step = 1;  // the number of this update, from 1, for Adam's bias correction
};

// Immutable, thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual const OptimizerOptions& options() const noexcept = 0;
  // Names of the slots, as in checkpoints: {"momentum"}, {"exp_avg", "exp_avg_sq"}.
  virtual std::span<const std::string_view> slot_names() const noexcept = 0;
  // Updates values and slots from the gradients. All spans are [n] f32, and there is one slot for
  // each of slot_names(). `decays`: weight decay applies to these elements.
  // Throws ShapeError when lengths differ.
  virtual void update(const UpdateStep& step, std::span<float> values,
                      std::span<const float> gradients, std::span<const std::span<float>> slots,
                      bool decays) const = 0;
  // The constants of this update, for a device that computes it with kernels of its own.
  virtual UpdateConstants constants(const UpdateStep& step, bool decays) const = 0;
};

struct OptimizerRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&);
};
// The table behind --optimizer.
std::span<const OptimizerRow> optimizers() noexcept;

// Throws UsageError for an unknown name (the message lists the known ones) or a constant out of
// range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

// Throws ShapeError unless all arrays have equal size and there is one slot for each slot name.
void check_update_lengths(const Optimizer& optimizer, std::span<float> values,
                          std::span<const float> gradients,
                          std::span<const std::span<float>> slots);

}  // namespace syncopate
