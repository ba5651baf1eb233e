#include "models/optim/optimizer.h"

#include <array>
#include <cmath>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/base/isa.h"
#include "models/optim/kernels/optimizer_kernels.h"
#include "models/optim/rules.h"

namespace syncopate {
namespace {

constexpr std::array kOptimizers = {
    OptimizerRow{"sgd", "value -= rate * gradient", make_sgd},
    OptimizerRow{"momentum", "gradient descent with momentum, Nesterov's on request",
                 make_momentum},
    OptimizerRow{"adam", "Kingma and Ba 2015; weight decay goes into the gradient", make_adam},
    OptimizerRow{"adamw", "Adam with decoupled weight decay", make_adamw},
};

void require(bool holds, const std::string& flag, double found, const std::string& expected) {
  if (holds) return;
  throw UsageError(flag + " " + shortest_text(found) + ": expected " + expected);
}

// A NaN fails every comparison, so it fails here too.
bool is_fraction(double x) { return x >= 0.0 && x < 1.0; }

void check_constants(const OptimizerOptions& options) {
  require(is_fraction(options.momentum), "--momentum", options.momentum, "a number in [0, 1)");
  require(is_fraction(options.beta1), "--beta1", options.beta1, "a number in [0, 1)");
  require(is_fraction(options.beta2), "--beta2", options.beta2, "a number in [0, 1)");
  require(options.epsilon > 0.0 && std::isfinite(options.epsilon), "--epsilon", options.epsilon,
          "a positive number");
  require(options.weight_decay >= 0.0 && std::isfinite(options.weight_decay), "--weight-decay",
          options.weight_decay, "a number that is not negative");
  if (options.nesterov && options.momentum == 0.0) {
    throw UsageError("Nesterov momentum with --momentum 0 is plain sgd; give a momentum above 0");
  }
}

}  // namespace

std::span<const OptimizerRow> optimizers() noexcept { return kOptimizers; }

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  std::string known;
  for (const OptimizerRow& row : kOptimizers) {
    if (row.name == options.name) {
      check_constants(options);
      return row.make(options);
    }
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError("--optimizer " + options.name + ": no such optimizer; choose one of " + known);
}

void check_update_lengths(const Optimizer& optimizer, std::span<float> values,
                          std::span<const float> gradients,
                          std::span<const std::span<float>> slots) {
  bool agree = gradients.size() == values.size() && slots.size() == optimizer.slot_names().size();
  for (const std::span<float> slot : slots) agree = agree && slot.size() == values.size();
  if (agree) return;
  std::string found = std::to_string(values.size()) + " values, " +
                      std::to_string(gradients.size()) + " gradients, slots of";
  for (const std::span<float> slot : slots) found += " " + std::to_string(slot.size());
  throw ShapeError("optimizer " + optimizer.options().name + ": " + found + "; expected " +
                   std::to_string(optimizer.slot_names().size()) +
                   " slots and as many elements in each as values");
}

const OptimizerKernels& optimizer_kernels(Isa isa) noexcept {
  switch (isa) {
    case Isa::kV4:
      return v4::kOptimizerKernels;
    case Isa::kV3:
      return v3::kOptimizerKernels;
    case Isa::kV2:
      break;
  }
  return v2::kOptimizerKernels;
}

}  // namespace syncopate
