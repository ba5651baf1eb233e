#include "tests/bench/virtual_clock/virtual_case.h"

#include <gtest/gtest.h>

#include "worker/run/run_data.h"
#include "worker/run/run_sizes.h"

namespace syncopate::bench {
namespace {

std::vector<double> losses_of(const RecordedLines& lines) {
  std::vector<double> losses;
  for (const EvalMetrics& evaluation : lines.evaluations) losses.push_back(evaluation.result.loss);
  return losses;
}

}  // namespace

VirtualCase::VirtualCase(const std::string& strategy, std::int64_t samples,
                         const std::string& model, const std::string& split) {
  options.model = model;
  options.data = (model == "resnet20" ? "synthetic:3x32x32:10:" : "synthetic:1x28x28:10:") +
                 std::to_string(samples);
  options.strategy.name = strategy;
  options.strategy.seed = 5;
  options.strategy.batch_size_per_replica = kBatch;
  options.schedule.learning_rate = 0.05;
  options.loop.total_epochs = 1;
  options.loop.log_every_steps = 4;
  faults.service_time = {.kind = ServiceTimeKind::kConstant, .mean_milliseconds = 10.0};
  data_ =
      open_dataset(options.data, {.cache_dir = {}, .seed = options.strategy.seed, .split = split});
  graph_ = std::make_unique<Graph>(network_for_data(model, options.data, data_));
}

Summary VirtualCase::train_virtually() {
  lines = {};
  progress.clear();
  return bench::train_virtually({.options = options,
                                 .workers = workers,
                                 .servers = servers,
                                 .data = data_,
                                 .graph = *graph_,
                                 .faults = faults},
                                lines, [&](double fraction) { progress.push_back(fraction); });
}

std::vector<RecordedLines> VirtualCase::train_in_clusters(
    const std::vector<FaultInjection>& others) {
  lines = {};
  std::vector<RecordedLines> all(others.size());
  std::vector<OtherTimes> times;
  for (std::size_t i = 0; i < others.size(); ++i) times.push_back({others[i], all[i]});
  bench::train_in_clusters({.options = options,
                            .workers = workers,
                            .servers = servers,
                            .data = data_,
                            .graph = *graph_,
                            .faults = faults},
                           lines, times, {});
  return all;
}

TrainOutcome VirtualCase::train_in_real_time(const std::string& name, int replicas) {
  lines = {};
  TrainOptions real = options;
  real.strategy.name = name;
  real.strategy.replicas = replicas;
  real.strategy.lanes = 1;
  real.strategy.consistency = {};
  const std::int64_t samples = data_.train->size();
  const std::int64_t batch = choose_batch(real, replicas, samples, real.strategy);
  const Schedule schedule(schedule_of(real, replicas, batch, samples / batch));
  const auto strategy = make_strategy(real.strategy, *graph_);
  strategy->begin({});
  Evaluator evaluator(*strategy, *graph_, data_.watched());
  InputOptions input = real.input;
  input.batch_size = batch;
  input.seed = real.strategy.seed;
  input.shard = strategy->input_shard();
  const auto batches = make_batch_source(*data_.train, input);
  const auto display = make_silent_display();
  return train({.graph = *graph_,
                .strategy = *strategy,
                .input = *batches,
                .dataset_size = samples,
                .global_batch = batch,
                .schedule = schedule,
                .optimizer = real.strategy.optimizer.name,
                .evaluator = evaluator,
                .metrics = lines,
                .display = *display,
                .stop = [] { return std::nullopt; },
                .final_test = data_.validation != nullptr ? data_.test.get() : nullptr},
               real.loop, {});
}

void expect_the_bits_of(VirtualCase& run, const std::string& strategy, int replicas) {
  run.options.loop.eval_every_steps = 2;
  run.workers = strategy == "pipeline" ? run.options.strategy.stages : replicas;
  const Summary found = run.train_virtually();
  const std::vector<double> found_losses = losses_of(run.lines);
  const std::vector<StepMetrics> found_steps = run.lines.steps;
  const TrainOutcome expected = run.train_in_real_time(strategy, replicas);
  EXPECT_EQ(found.weights_hash, expected.weights_hash) << replicas << " replicas";
  EXPECT_EQ(found.test.metric, expected.test->metric);
  EXPECT_EQ(found.validation.has_value(), expected.validation.has_value());
  if (expected.validation) {
    EXPECT_EQ(found.validation->loss, expected.validation->loss);
  }
  EXPECT_EQ(found_losses, losses_of(run.lines));
  EXPECT_EQ(found.steps, expected.progress.at.step);
  EXPECT_EQ(found.samples, expected.progress.at.samples);
  ASSERT_EQ(found_steps.size(), run.lines.steps.size());
  for (std::size_t i = 0; i < found_steps.size(); ++i) {
    EXPECT_EQ(found_steps[i].step, run.lines.steps[i].step);
    EXPECT_EQ(found_steps[i].epoch, run.lines.steps[i].epoch);
    EXPECT_EQ(found_steps[i].learning_rate, run.lines.steps[i].learning_rate);
    EXPECT_EQ(found_steps[i].metric, run.lines.steps[i].metric);
    // The tolerance is 1e-9, because replicas exchange their losses as digits, down to 2^-42.
    EXPECT_NEAR(found_steps[i].loss, run.lines.steps[i].loss, 1e-9);
  }
}

}  // namespace syncopate::bench
