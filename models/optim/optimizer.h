// The update rules. Element by element, so that a slice and the whole arena, a device and a shard
// give the same bits. Memory is the caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/optim/update_constants.h"

namespace syncopate {

struct OptimizerOptions {
  std::string name = "sgd";  // a row of optimizers()
  // Doubles, because 1 - beta2 of an f32 0.999 is off by 5e-5.
  double momentum = 0.9;      // momentum: in [0, 1)
  bool nesterov = false;      // momentum
  double beta1 = 0.9;         // adam, adamw: in [0, 1)
  double beta2 = 0.999;       // adam, adamw: in [0, 1)
  double epsilon = 1e-8;      // adam, adamw: positive
  double weight_decay = 0.0;  // times the value, added to the gradient; adamw: taken from the value
};

// What changes from step to step.
struct UpdateStep {
  float learning_rate = 0.0F;
  std::int64_t step = 1;  // this update's number, from 1: Adam's bias correction
};

// Immutable, thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual const OptimizerOptions& options() const noexcept = 0;
  // Names of the slots, as in checkpoints: {"momentum"}, {"exp_avg", "exp_avg_sq"}.
  virtual std::span<const std::string_view> slot_names() const noexcept = 0;
  // values -= f(gradients, slots); slots advance. All spans [n] f32; slots.size() ==
  // slot_names().size(). decays: weight decay applies to these elements. Throws ShapeError when
  // lengths differ.
  virtual void update(const UpdateStep& step, std::span<float> values,
                      std::span<const float> gradients, std::span<const std::span<float>> slots,
                      bool decays) const = 0;
  // The same update in numbers, for a device that computes it by itself.
  virtual UpdateConstants constants(const UpdateStep& step, bool decays) const = 0;
};

struct OptimizerRow {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&);
};
// The table behind --optimizer.
std::span<const OptimizerRow> optimizers() noexcept;

// Throws UsageError for an unknown name (listing the right ones) or a constant out of range.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

}  // namespace syncopate
