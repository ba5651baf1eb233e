#include "bench/harness/step_calibration.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <vector>

#include "bench/harness/measure.h"
#include "models/base/errors.h"
#include "strategies/strategy.h"
#include "strategies/strategy_options.h"
#include "worker/input/batches/batch_source.h"
#include "worker/train/train_step.h"

namespace syncopate::bench {
namespace {

constexpr int kWarmUpSteps = 10;
// The learning rate does not change the time of a step. It is small, so that numbers stay finite.
constexpr float kLearningRate = 1e-3F;

// Takes the steps of one strategy with `replicas` replicas in this process.
class MeasuredTraining {
 public:
  MeasuredTraining(const std::string& strategy, const Graph& graph, const Dataset& train,
                   std::int64_t batch_size, int replicas)
      : strategy_(make_strategy({.name = strategy,
                                 .batch_size_per_replica = batch_size,
                                 .replicas = replicas,
                                 .optimizer = {.name = "sgd"},
                                 .consistency = {},
                                 .parameter_server = {}},
                                graph)) {
    strategy_->begin({});
    batches_ = make_batch_source(
        train, {.batch_size = batch_size * replicas, .shard = strategy_->input_shard()});
    for (int i = 0; i < kWarmUpSteps; ++i) step();
  }

  // Returns the seconds of one step.
  double step() {
    const auto begun = SteadyClock::now();
    const StepReport report =
        train_step(*strategy_, *batches_, {.learning_rate = kLearningRate, .step = ++steps_});
    const double seconds = seconds_since(begun);
    if (std::isfinite(report.scores.loss)) return seconds;
    throw DivergenceError(fmt::format(
        "calibration: the loss is not a number in step {}; is the data what the network expects?",
        steps_));
  }
  std::string device() const { return strategy_->replicas().front().backend->description(); }

 private:
  const std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<BatchSource> batches_;
  std::int64_t steps_ = 0;
};

}  // namespace

Calibration calibrate_step(const Graph& graph, const Dataset& train, std::int64_t batch_size,
                           int steps, double seconds) {
  if (batch_size > train.size()) {
    throw UsageError(
        fmt::format("--batch-size-per-replica {}: the data has {} samples; choose a smaller batch",
                    batch_size, train.size()));
  }
  MeasuredTraining training(kOneDevice, graph, train, batch_size, 1);
  std::vector<double> times;
  const auto begun = SteadyClock::now();
  while (std::ssize(times) < steps || seconds_since(begun) < seconds) {
    times.push_back(training.step());
  }
  const Spread spread = spread_of(times);
  return {.step_seconds = spread.median,
          .lowest_seconds = spread.min,
          .highest_seconds = spread.max,
          .steps = static_cast<int>(times.size()),
          .device = training.device()};
}

std::optional<Spread> measure_two_replicas(const Graph& graph, const Dataset& train,
                                           std::int64_t batch_size) {
  constexpr double kRoundSeconds = 0.4;
  if (kCheckedWorkers * batch_size > train.size()) return std::nullopt;
  MeasuredTraining training(kMirrored, graph, train, batch_size, kCheckedWorkers);
  std::vector<double> rounds;
  for (int round = 0; round < kCheckRounds; ++round) {
    const auto begun = SteadyClock::now();
    std::vector<double> seconds;
    while (std::ssize(seconds) < kWarmUpSteps || seconds_since(begun) < kRoundSeconds) {
      seconds.push_back(training.step());
    }
    rounds.push_back(static_cast<double>(kCheckedWorkers * batch_size) / median(seconds));
  }
  return spread_of(rounds);
}

}  // namespace syncopate::bench
