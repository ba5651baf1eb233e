#include "worker/train/input_bound.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate {
namespace {

constexpr double kLeastFraction = 0.05;
// The first steps wait for the readers to start, and short runs vary.
constexpr std::int64_t kLeastSteps = 10;
constexpr double kLeastSeconds = 0.5;

}  // namespace

bool is_enough(const InputWait& wait) {
  return wait.steps >= kLeastSteps && wait.step_seconds >= kLeastSeconds;
}

std::string describe_input_bound(const InputWait& wait, const InputMeans& means) {
  if (!is_enough(wait)) return "";
  const double fraction = wait.wait_seconds / wait.step_seconds;
  if (fraction < kLeastFraction) return "";
  const int readers = std::min(wait.readers, means.cpus);
  std::string line = fmt::format(
      "input-bound: {:.0f} % of the step waits for {}; {} of {} CPU{} {}{}", 100.0 * fraction,
      means.is_encoded ? "decode" : "data", readers, means.cpus, means.cpus == 1 ? "" : "s",
      means.is_encoded ? "decode" : "read", readers == 1 ? "s" : "");
  if (readers == means.cpus) return line;
  if (!means.is_tuned) {
    line += "; --input-threads auto finds how many help";
  } else if (wait.most_readers > 0 && readers >= wait.most_readers) {
    line += "; this --prefetch allows no more readers, and --prefetch auto does";
  }
  return line;
}

}  // namespace syncopate
