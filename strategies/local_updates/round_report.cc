#include "strategies/local_updates/round_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/errors.h"

namespace syncopate {
namespace {

std::int64_t samples_of(std::span<const RoundReport> reports) noexcept {
  std::int64_t samples = 0;
  for (const RoundReport& report : reports) samples += report.sum.scores.num_samples;
  return samples;
}

}  // namespace

bool needs_displacements(const OuterRuleOptions& outer, int replicas) noexcept {
  return replicas > 1 || outer.learning_rate != 1.0 || outer.momentum != 0.0;
}

void add_step(RoundReport& report, const StepReport& step) noexcept {
  StepReport summand = step;
  summand.scores.loss *= static_cast<double>(step.scores.num_samples);
  report.sum += summand;
  report.sum.stops = step.stops;  // a step repeats the requests of earlier steps
  ++report.steps;
}

StepReport sum_of(std::span<const RoundReport> reports) noexcept {
  StepReport total = reports.front().sum;
  std::int64_t steps = reports.front().steps;
  for (const RoundReport& report : reports.subspan(1)) {
    total += report.sum;
    steps = std::max(steps, report.steps);
  }
  total.round_steps = steps;
  total.scores.loss *= static_cast<double>(steps) /
                       static_cast<double>(std::max<std::int64_t>(samples_of(reports), 1));
  return total;
}

float last_learning_rate(std::span<const RoundReport> reports) noexcept {
  // The first of those with the most steps, so that all replicas take the same.
  return std::ranges::max_element(reports, {}, &RoundReport::steps)->learning_rate;
}

float weight_of(std::span<const RoundReport> reports, std::size_t replica) noexcept {
  return displacement_weight(reports[replica].sum.scores.num_samples, samples_of(reports));
}

void require_equal_hashes(std::span<const RoundReport> reports) {
  for (std::size_t r = 1; r < reports.size(); ++r) {
    if (reports[r].hash == reports.front().hash) continue;
    throw PeerError(fmt::format(
        "after the last exchange, replica {} and replica 0 have different variables: one "
        "of them computed wrong sums, or its memory is damaged",
        r));
  }
}

}  // namespace syncopate
