// The makers behind the rows of optimizers(); the constants have been checked by make_optimizer.
#pragma once

#include <memory>
#include <span>

#include "models/optim/optimizer.h"

namespace syncopate {

// sgd.cc
std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_momentum(const OptimizerOptions& options);
// adam.cc
std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options);

// Throws ShapeError unless the optimizer has that many slots and all lengths agree.
void check_update_lengths(const Optimizer& optimizer, std::span<float> values,
                          std::span<const float> gradients,
                          std::span<const std::span<float>> slots);

}  // namespace syncopate
