#include "bench/compare/measured_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/compare/run_plan.h"
#include "bench/harness/step_calibration.h"
#include "deploy/cli/flag.h"
#include "models/base/errors.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

constexpr double kMostRatio = 1.1;  // of two measurements on a quiet machine
constexpr int kLeastSteps = 5;      // of a measurement, however long they take
constexpr double kSeconds = 1.0;    // of a measurement

double in_three_digits(double value) { return std::stod(fmt::format("{:.3g}", value)); }

}  // namespace

StepTime parse_step_time(const std::string& text) {
  if (text == "measure") return {.is_measured = true};
  StepTime step;
  try {
    store_value({.name = "--step-time",
                 .target = &step.milliseconds,
                 .help = "",
                 .rules = {.unit = "milliseconds", .above = 0.0},
                 .words = {text}});
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}, or measure", error.what()));
  }
  return step;
}

void set_step_time(CompareOptions& options, double milliseconds) {
  options.step_time.milliseconds = milliseconds;
  options.clusters = parse_clusters(options.cluster_words, most_workers(options), milliseconds);
}

double agreed_step_time(double first_milliseconds, double second_milliseconds) {
  const auto [less, more] = std::minmax(first_milliseconds, second_milliseconds);
  if (more > kMostRatio * less) {
    throw UsageError(fmt::format(
        "--step-time measure: a step took {:.3g} ms and then {:.3g} ms, which differ by more than "
        "{:.0f} %; repeat the command on a quiet machine, or give --step-time MILLISECONDS",
        first_milliseconds, second_milliseconds, 100.0 * (kMostRatio - 1.0)));
  }
  return in_three_digits(std::sqrt(first_milliseconds * second_milliseconds));
}

double measure_step_time(const CompareOptions& options, const DataSplits& data) {
  const Graph graph =
      network_for_data(options.model, options.data, data, options.shared.options.network);
  const auto milliseconds = [&] {
    return 1e3 *
           calibrate_step(graph, *data.train, options.batch_size_per_replica, kLeastSteps, kSeconds)
               .step_seconds;
  };
  const double first = milliseconds();
  return agreed_step_time(first, milliseconds());
}

}  // namespace syncopate::bench
