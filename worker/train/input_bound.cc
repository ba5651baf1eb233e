#include "worker/train/input_bound.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate {
namespace {

constexpr double kLeastFraction = 0.05;
// The first steps wait for the readers to start, and short runs vary.
constexpr std::int64_t kLeastSteps = 10;
constexpr double kLeastSeconds = 0.5;

// Indices of the numbers of a task.
enum : std::size_t { kSteps, kStepSeconds, kWait, kReaders, kMost, kCpus, kIsEncoded, kIsTuned };

}  // namespace

std::array<double, TaskInput::kNumbers> TaskInput::as_numbers() const {
  std::array<double, kNumbers> numbers{};
  numbers[kSteps] = static_cast<double>(wait.steps);
  numbers[kStepSeconds] = wait.step_seconds;
  numbers[kWait] = wait.wait_seconds;
  numbers[kReaders] = wait.readers;
  numbers[kMost] = wait.most_readers;
  numbers[kCpus] = means.cpus;
  numbers[kIsEncoded] = means.is_encoded ? 1.0 : 0.0;
  numbers[kIsTuned] = means.is_tuned ? 1.0 : 0.0;
  return numbers;
}

TaskInput longest_wait(std::span<const double> gathered) {
  std::span<const double> worst = gathered.first(TaskInput::kNumbers);
  int task = 0;
  for (std::size_t at = 0; at < gathered.size(); at += TaskInput::kNumbers) {
    const std::span<const double> each = gathered.subspan(at, TaskInput::kNumbers);
    if (each[kWait] * worst[kStepSeconds] <= worst[kWait] * each[kStepSeconds]) continue;
    worst = each;
    task = static_cast<int>(at / TaskInput::kNumbers);
  }
  return {.task = task,
          .wait = {.steps = static_cast<std::int64_t>(worst[kSteps]),
                   .step_seconds = worst[kStepSeconds],
                   .wait_seconds = worst[kWait],
                   .readers = static_cast<int>(worst[kReaders]),
                   .most_readers = static_cast<int>(worst[kMost])},
          .means = {.cpus = static_cast<int>(worst[kCpus]),
                    .is_encoded = worst[kIsEncoded] != 0.0,
                    .is_tuned = worst[kIsTuned] != 0.0}};
}

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
