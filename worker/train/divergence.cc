// Detects divergence, which means that values or losses are no longer finite, and makes the error
// that ends the run. The training loops make this check before they use or save the values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "worker/train/train_loop.h"

namespace syncopate {
namespace {

bool all_finite(const Tensor& values) {
  // A sum of 0 * x tests for NaN: 0 * x is 0 for a finite x and NaN otherwise, so the sum needs no
  // branches and the compiler unrolls it.
  std::array<float, 8> sums{};
  const std::span<const float> elements = values.f32();
  for (std::size_t i = 0; i < elements.size(); ++i) sums[i % sums.size()] += 0.0F * elements[i];
  return std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == 0.0F; });
}

}  // namespace

bool all_finite(const Snapshot& snapshot) {
  return all_finite(snapshot.values) && all_finite(snapshot.state) &&
         std::all_of(snapshot.slots.begin(), snapshot.slots.end(),
                     [](const Snapshot::Slot& slot) { return all_finite(slot.values); });
}

std::string describe_divergence(double loss) {
  return std::isnan(loss) ? "the loss is not a number" : "the loss is infinite";
}

DivergenceError diverged(const std::string& what, const DivergencePlace& place) {
  return DivergenceError(fmt::format(
      "{} at step {}, with learning rate {:g}; {}; try a lower --learning-rate, --warmup-epochs or "
      "less --weight-decay",
      what, place.step, place.learning_rate,
      place.last_checkpoint ? "the last good checkpoint is " + place.last_checkpoint->string()
                            : std::string("no checkpoint was written")));
}

}  // namespace syncopate
