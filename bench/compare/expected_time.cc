#include "bench/compare/expected_time.h"

#include <algorithm>

#include "bench/compare/run_plan.h"
#include "bench/harness/step_calibration.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

constexpr double kStartSeconds = 1.0;   // processes start, open their data and meet
constexpr double kForwardShare = 0.35;  // of a training step that an evaluation of its batch takes
constexpr int kFewestSteps = 2;
constexpr double kMeasuredSeconds = 0.2;

}  // namespace

double expected_seconds(const CompareOptions& options, const Variant& variant,
                        const RunConditions& conditions) {
  const auto batch = static_cast<double>(options.batch_size_per_replica);
  const double sample_seconds = conditions.step_seconds / batch;
  const double evaluations = kForwardShare * sample_seconds *
                             static_cast<double>(conditions.watched_samples * options.evaluations);
  if (options.budget == Budget::kSeconds) return kStartSeconds + options.seconds + evaluations;
  const auto samples = static_cast<double>(updates_of(options, variant, conditions.train_samples) *
                                           samples_of_update(options, variant));
  // The workers share the CPUs; a worker computes with one thread or with several.
  const int threads = variant.workers * threads_per_worker(options);
  const double compute = samples * sample_seconds / std::min(threads, conditions.cpus);
  const double delays = samples / batch / variant.workers *
                        options.cluster.faults.service_time.mean_milliseconds / 1e3;
  return kStartSeconds + compute + delays + evaluations;
}

std::optional<double> expected_seconds(const CompareOptions& options, const std::vector<int>& runs,
                                       const DataSplits& data) {
  const TrainOptions& train = options.shared.options;
  const bool is_on_cpu = train.strategy.devices.front().kind == DeviceKind::kCpu;
  const bool has_runs = std::ranges::any_of(runs, [](int count) { return count > 0; });
  if (options.clock != Clock::kReal || !is_on_cpu || !has_runs) return std::nullopt;
  try {
    const Graph graph = network_for_data(options.model, options.data, data, train.network);
    const double step_seconds = calibrate_step(graph, *data.train, options.batch_size_per_replica,
                                               kFewestSteps, kMeasuredSeconds)
                                    .step_seconds;
    double seconds = 0.0;
    for (std::size_t v = 0; v < options.variants.size(); ++v) {
      seconds += runs.at(v) * expected_seconds(options, options.variants[v],
                                               {.step_seconds = step_seconds,
                                                .cpus = usable_cpu_count(),
                                                .train_samples = data.train->size(),
                                                .watched_samples = data.watched().size()});
    }
    return seconds;
  } catch (const Error&) {
    return std::nullopt;  // the runs report the same error, or read other data
  }
}

}  // namespace syncopate::bench
