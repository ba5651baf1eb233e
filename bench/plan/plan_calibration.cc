#include "bench/plan/plan_calibration.h"

#include <chrono>
#include <cmath>

#include "bench/harness/measure.h"
#include "models/base/errors.h"
#include "strategies/strategy.h"
#include "worker/input/batch_source.h"
#include "worker/train/train_step.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUpSteps = 10;
// The rate does not change the time of a step. It is small, so that numbers stay finite.
constexpr float kLearningRate = 1e-3F;

}  // namespace

Calibration calibrate(const Graph& graph, const Dataset& train, std::int64_t batch_size,
                      int steps) {
  if (batch_size > train.size()) {
    throw UsageError("--batch-size-per-replica " + std::to_string(batch_size) + ": the data has " +
                     std::to_string(train.size()) + " samples; choose a smaller batch");
  }
  const auto strategy = make_strategy({.name = "one-device",
                                       .batch_size_per_replica = batch_size,
                                       .optimizer = {.name = "sgd"},
                                       .consistency = {},
                                       .parameter_server = {}},
                                      graph);
  strategy->begin({});
  const auto batches =
      make_batch_source(train, {.batch_size = batch_size, .shard = strategy->input_shard()});
  std::vector<double> seconds;
  for (int step = 1; step <= kWarmUpSteps + steps; ++step) {
    const Clock::time_point begun = Clock::now();
    const StepReport report =
        train_step(*strategy, *batches, {.learning_rate = kLearningRate, .step = step});
    if (step > kWarmUpSteps) {
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    }
    if (!std::isfinite(report.scores.loss)) {
      throw DivergenceError("calibration: the loss is not a number in step " +
                            std::to_string(step) + "; is the data what the network expects?");
    }
  }
  const Spread spread = spread_of(seconds);
  return {.step_seconds = spread.median,
          .lowest_seconds = spread.min,
          .highest_seconds = spread.max,
          .steps = steps,
          .device = strategy->replicas().front().backend->description()};
}

}  // namespace syncopate::bench
