// Training that cannot go on because numbers are no longer finite: how it is noticed, and what is
// said of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models/base/errors.h"
#include "strategies/strategy.h"

namespace syncopate {

bool all_finite(const Snapshot& snapshot);

struct DivergencePlace {
  std::int64_t step = 0;
  double learning_rate = 0.0;
  std::optional<std::filesystem::path> last_checkpoint;  // from before
};

// Of a loss that is not finite: "the loss is not a number".
std::string describe_divergence(double loss);
// what: "the loss is infinite".
DivergenceError diverged(const std::string& what, const DivergencePlace& place);

}  // namespace syncopate
