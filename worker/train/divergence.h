// Detects divergence, which means that values or losses are no longer finite, and makes the error
// that ends the run. The training loops make this check before they use or save the values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models/base/errors.h"
#include "strategies/snapshot.h"

namespace syncopate {

// Whether all values and slots are finite numbers.
bool all_finite(const Snapshot& snapshot);

struct DivergencePlace {
  std::int64_t step = 0;
  double learning_rate = 0.0;
  std::optional<std::filesystem::path> last_checkpoint;  // checkpoint of an earlier step
};

// Describes a loss that is not finite, such as "the loss is not a number".
std::string describe_divergence(double loss);
// Returns the error to throw after a divergence. what: what is not finite, such as "the loss is
// infinite".
DivergenceError diverged(const std::string& what, const DivergencePlace& place);

}  // namespace syncopate
