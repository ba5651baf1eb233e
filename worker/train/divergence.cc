// Detects divergence, which means that values or losses are no longer finite, and makes the error
// that ends the run. The training loops make this check before they use or save the values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "worker/train/train_loop.h"

namespace syncopate {
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
