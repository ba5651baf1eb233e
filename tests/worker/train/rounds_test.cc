// Tests the training loop with a strategy that exchanges something only at the end of a round.
// Epochs have five steps and rounds three, so the ten steps of a run make rounds that end after
// steps 3, 6, 9 and 10.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/train/asynchronous_case.h"
#include "tests/worker/train/round_strategy.h"
#include "worker/train/train_step.h"

namespace syncopate {
namespace {

using Steps = std::vector<std::int64_t>;

class TrainingInRounds : public testing::Test {
 protected:
  TrainOutcome train(int replicas = 1) {
    RoundStrategy strategy(options_of(replicas), run_.graph, script_);
    return run_.train_synchronously(strategy, run_.start);
  }
  // Without evaluations, the loop polls once per step.
  void ask_to_stop_in_step(std::int64_t step) {
    polls_ = 0;
    run_.stop = [this, step]() -> std::optional<std::string_view> {
      return ++polls_ == step ? std::optional<std::string_view>("SIGTERM") : std::nullopt;
    };
  }
  StrategyOptions options_of(int replicas) const {
    StrategyOptions options;
    options.seed = run_.start.seed;
    options.replicas = replicas;
    options.batch_size_per_replica = AsynchronousCase::kBatch / replicas;
    options.optimizer.name = run_.optimizer;
    return options;
  }
  Steps lines() const {
    Steps steps;
    for (const StepMetrics& line : run_.metrics.steps) steps.push_back(line.step);
    return steps;
  }
  Steps evaluations() const {
    Steps steps;
    for (const EvalMetrics& line : run_.metrics.evaluations) steps.push_back(line.step);
    return steps;
  }
  static bool has_checkpoint(const TemporaryFolder& folder, std::int64_t step) {
    return std::filesystem::exists(checkpoint_path(folder.path(), step));
  }

  AsynchronousCase run_{"mlp", "sgd", {.learning_rate = 0.01}};
  RoundScript script_;
  std::int64_t polls_ = 0;
};

TEST_F(TrainingInRounds, EndsWithAPartialRound) {
  const TrainOutcome outcome = train(2);
  EXPECT_EQ(script_.round_ends, (Steps{3, 6, 9, 10}));
  EXPECT_EQ(script_.last_steps, Steps{10});
  EXPECT_EQ(outcome.progress.at.step, 10);
  EXPECT_EQ(outcome.progress.at.samples, 160) << "84 samples make five batches of 16 per epoch";
  EXPECT_EQ(outcome.progress.at.position, (ps::DataPosition{2, 0}));
}

TEST_F(TrainingInRounds, FollowsTheStepsThatTheUserGave) {
  run_.options.total_steps = 7;
  EXPECT_EQ(train().progress.at.samples, 7 * 16);
  EXPECT_EQ(script_.round_ends, (Steps{3, 6, 7}));
  EXPECT_EQ(script_.last_steps, Steps{7});
}

TEST_F(TrainingInRounds, OfOneReplicaIsOneDeviceBitForBit) {
  const TrainOutcome found = train();
  const auto alone = run_.make_one_device();
  const TrainOutcome expected = run_.train_synchronously(*alone, run_.start);
  EXPECT_EQ(found.weights_hash, expected.weights_hash);
  EXPECT_EQ(found.progress.at, expected.progress.at);
  EXPECT_EQ(found.test->loss, expected.test->loss);
}

TEST_F(TrainingInRounds, WritesALineAfterTheRoundInWhichOneIsDue) {
  run_.options.log_every_steps = 4;
  (void)train(2);
  ASSERT_EQ(lines(), (Steps{6, 9, 10}));
  EXPECT_EQ(run_.metrics.steps[0].samples, 6 * 16);
  EXPECT_EQ(run_.metrics.steps[1].samples, 9 * 16);
  EXPECT_EQ(run_.metrics.steps[2].samples, 10 * 16);
  EXPECT_EQ(run_.metrics.steps[0].epoch, 1.2);
}

TEST_F(TrainingInRounds, ReportsTheMeanLossOfAStep) {
  run_.options.log_every_steps = 10;
  script_.steps_per_round = 4;
  (void)train();
  script_.steps_per_round = 1;
  (void)train();
  ASSERT_EQ(lines(), (Steps{10, 10}));
  // 1e-12: the losses are added in another order.
  EXPECT_NEAR(run_.metrics.steps[0].loss, run_.metrics.steps[1].loss, 1e-12);
  EXPECT_EQ(run_.metrics.steps[0].metric, run_.metrics.steps[1].metric);
}

TEST_F(TrainingInRounds, ReportsTheLossOfTheRoundsThatEndInTheLastEpoch) {
  run_.options.log_every_steps = 1;
  script_.steps_per_round = 4;
  const TrainOutcome outcome = train();
  ASSERT_EQ(lines(), (Steps{4, 8, 10}));
  const double expected = (4 * run_.metrics.steps[1].loss + 2 * run_.metrics.steps[2].loss) / 6;
  EXPECT_NEAR(outcome.train_loss, expected, 1e-12);  // 1e-12: the sums are rounded
}

TEST_F(TrainingInRounds, EvaluatesAndSavesAfterTheRoundInWhichItIsDue) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  run_.options.keep_checkpoints = 10;
  run_.options.eval_every_steps = 4;
  run_.options.checkpoint_every_steps = 5;
  const TrainOutcome outcome = train(2);
  EXPECT_EQ(evaluations(), (Steps{6, 9, 10}));
  for (std::int64_t step = 1; step <= 10; ++step) {
    EXPECT_EQ(has_checkpoint(folder, step), step == 6 || step == 10) << step;
  }
  EXPECT_EQ(outcome.checkpoint, checkpoint_path(folder.path(), 10));
}

TEST_F(TrainingInRounds, MayEndAnEpochInTheMiddleOfARound) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  (void)train(2);
  EXPECT_EQ(evaluations(), (Steps{6, 10})) << "the first epoch ends after step 5";
  EXPECT_TRUE(has_checkpoint(folder, 6));
  EXPECT_FALSE(has_checkpoint(folder, 5));
}

TEST_F(TrainingInRounds, EvaluatesOnceForSeveralEpochsInARound) {
  run_.options.total_epochs = 4;
  run_.options.eval_every_epochs = 2;
  script_.steps_per_round = 16;
  (void)train();
  EXPECT_EQ(evaluations(), (Steps{16, 20}));
}

TEST_F(TrainingInRounds, NeverWaitsForOthersInTheMiddleOfARound) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  run_.options.eval_every_steps = run_.options.checkpoint_every_steps = 1;
  run_.options.log_every_steps = 1;
  run_.options.rules.stop_at = StopAt{.metric = Metric::kMeanLoss, .value = 0.0};
  run_.options.rules.keeps_best = true;
  (void)train(2);
  EXPECT_EQ(script_.calls_in_round, Steps{});
  for (const std::int64_t step : script_.round_ends) {
    EXPECT_TRUE(std::ranges::count(script_.calls_at_round_end, step) > 0) << step;
  }
  EXPECT_EQ(evaluations(), script_.round_ends);
  EXPECT_EQ(lines(), script_.round_ends);
}

TEST_F(TrainingInRounds, AppliesRulesAfterTheRound) {
  run_.options.eval_every_steps = 1;
  run_.options.rules.stop_at = StopAt{.metric = Metric::kMeanLoss, .value = 1e9};
  EXPECT_EQ(train().progress.at.step, 3);
}

TEST_F(TrainingInRounds, StopsAfterTheRoundInWhichItWasAsked) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  ask_to_stop_in_step(4);
  const TrainOutcome outcome = train(2);
  EXPECT_EQ(outcome.stopped_by, "SIGTERM");
  EXPECT_EQ(outcome.progress.at.step, 6);
  EXPECT_EQ(outcome.progress.at.samples, 6 * 16);
  EXPECT_EQ(outcome.checkpoint, checkpoint_path(folder.path(), 6));
}

TEST_F(TrainingInRounds, CompletesAShortRoundWhenItIsAskedToStop) {
  script_.steps_per_round = 8;
  script_.steps_of_round = {8, 8};
  ask_to_stop_in_step(2);
  EXPECT_EQ(train(2).progress.at.step, 8) << "the steps left take less than 10 s";
  EXPECT_TRUE(contains(run_.display.notes.back(), "the round is complete"));
}

TEST_F(TrainingInRounds, EndsALongRoundWhenItIsAskedToStop) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  run_.options.total_epochs = script_.steps_per_round = 1'000'000'000;  // hours
  script_.steps_of_round = {2, 2};
  ask_to_stop_in_step(2);
  const TrainOutcome outcome = train(2);
  EXPECT_EQ(outcome.stopped_by, "SIGTERM");
  EXPECT_EQ(outcome.progress.at.step, 2);
  EXPECT_EQ(outcome.progress.at.position, (ps::DataPosition{0, 32}));
  EXPECT_EQ(outcome.checkpoint, checkpoint_path(folder.path(), 2));
  EXPECT_TRUE(contains(run_.display.notes.back(), "the round ended after 2 of 1000000000 steps"));
}

// The second replica has one of the three steps, which have 16 samples each.
TEST_F(TrainingInRounds, LeavesTheSamplesOfMissingStepsForAResumedRun) {
  run_.options.total_epochs = script_.steps_per_round = 1'000'000'000;
  script_.steps_of_round = {3, 1};
  ask_to_stop_in_step(3);
  const TrainOutcome stopped = train(2);
  EXPECT_EQ(stopped.progress.at.step, 3);
  EXPECT_EQ(stopped.progress.at.position, (ps::DataPosition{0, 48, {{0, 24, 32}, {0, 40, 48}}}));
  EXPECT_TRUE(contains(run_.display.notes.back(), "the round ended after 1 to 3 of"));
  run_.options.total_epochs = 1;
  script_ = {};
  RoundStrategy strategy(options_of(2), run_.graph, script_);
  const TrainOutcome resumed = run_.train_synchronously(strategy, stopped.progress);
  EXPECT_EQ(resumed.progress.at.step, 3 + 3) << "52 of the 84 samples of the epoch are left";
  EXPECT_EQ(resumed.progress.at.position, (ps::DataPosition{1, 0}));
}

TEST_F(TrainingInRounds, MakesAnEvaluationThatAStopCutShortWhenItIsResumed) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  run_.options.rules.keeps_best = true;
  const TrainLoopOptions by_epochs = run_.options;
  TrainLoopOptions by_steps = run_.options;
  by_steps.eval_every_steps = 5;
  for (const TrainLoopOptions& options : {by_epochs, by_steps}) {
    for (const std::int64_t steps : {1, 3}) {
      script_.steps_per_round = steps;
      const std::int64_t evaluated = steps == 1 ? 5 : 6;  // the evaluation is due after step 5
      run_.options = options;
      run_.metrics.evaluations.clear();
      RoundStrategy strategy(options_of(1), run_.graph, script_);
      ask_to_stop_in_step(evaluated + 1);
      const TrainOutcome stopped = run_.train_synchronously(strategy, run_.start);
      EXPECT_EQ(stopped.stopped_by, "SIGTERM");
      EXPECT_EQ(stopped.progress.at.step, evaluated);
      EXPECT_EQ(evaluations(), Steps{});
      const TrainOutcome resumed = run_.train_synchronously(strategy, stopped.progress);
      EXPECT_EQ(evaluations(), (Steps{evaluated, 10}));
      EXPECT_EQ(resumed.progress.at.step, 10);
    }
  }
}

TEST_F(TrainingInRounds, OverrunsItsTimeByLessThanARound) {
  run_.options.max_seconds = 1e-9;
  const TrainOutcome outcome = train();
  EXPECT_EQ(outcome.progress.at.step, 3);
  EXPECT_TRUE(outcome.test) << "the run is complete";
}

TEST_F(TrainingInRounds, EndsAtOnceIfItsOwnLossDiverges) {
  script_.diverges_at = {4};
  const std::string message = message_of<DivergenceError>([&] { (void)train(2); });
  EXPECT_TRUE(contains(message, "step 4")) << message;
}

TEST_F(TrainingInRounds, ShowsItsProgressAfterEachStep) {
  script_.steps_per_round = 1;
  (void)train();
  const std::vector<ProgressState> expected = std::exchange(run_.display.states, {});
  for (const std::int64_t steps : {3, 10}) {
    script_.steps_per_round = steps;
    (void)train();
    const std::vector<ProgressState> shown = std::exchange(run_.display.states, {});
    ASSERT_EQ(shown.size(), 10U);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(shown[i].step, static_cast<std::int64_t>(i + 1));
      EXPECT_GT(shown[i].samples_per_second, 0.0);
      EXPECT_TRUE(shown[i].remaining_seconds > 0.0 || i == 9);
      EXPECT_LT(shown[i].remaining_seconds, 600.0);
      // 0.02: at the end of a round the mean of its losses is shown, as a twentieth of the display.
      EXPECT_NEAR(shown[i].loss, expected[i].loss, 0.02) << i;
    }
  }
}

TEST_F(TrainingInRounds, CountsBadSamplesByEpoch) {
  const BadSamples one(1);
  run_.bad_samples = &one;
  run_.options.total_epochs = 3;
  script_.bad_in = {{2, 1}, {6, 1}, {11, 1}};  // one in each epoch
  for (const std::int64_t steps : {1, 3, 4, 15}) {
    script_.steps_per_round = steps;
    EXPECT_EQ(train(2).num_bad_in_epoch, 1) << steps;
  }
  script_.bad_in = {{7, 1}, {9, 1}};  // both in the second epoch
  for (const std::int64_t steps : {1, 3, 4, 15}) {
    script_.steps_per_round = steps;
    const std::string message = message_of<BadSampleError>([&] { (void)train(2); });
    EXPECT_TRUE(contains(message, "2 bad samples in epoch 2")) << message;
  }
  script_.bad_in = {{1, 4}};  // more than one per epoch of the round
  script_.steps_per_round = 15;
  EXPECT_THROW((void)train(2), BadSampleError);
}

// Returns a batch of five samples again and again, or this task's share of it.
class FiveSamples final : public BatchSource {
 public:
  FiveSamples(const DataSplits& data, InputShard shard) {
    const auto source =
        make_batch_source(*data.train, {.batch_size = 5, .seed = 1, .shard = shard});
    batch = source->next();
  }
  const Batch& next() override { return batch; }
  ps::DataPosition position() const override { return {}; }
  std::int64_t batches_per_epoch() const override { return 1; }
  InputCounters counters() const override { return {}; }

  Batch batch;
};

class ALocalStep : public TrainingInRounds {
 protected:
  static constexpr UpdateStep kStep{.learning_rate = 0.5F, .step = 1};

  static std::vector<float> values_of(Strategy& strategy, std::size_t replica = 0) {
    const auto values = strategy.replicas()[replica].arena->values().f32();
    return {values.begin(), values.end()};
  }
  // Returns the values after a step of one device on `batch` alone.
  std::vector<float> step_alone(FiveSamples batch) const {
    const auto alone = run_.make_one_device();
    batch.batch.loss_divisor = batch.batch.num_samples;
    (void)train_step(*alone, batch, kStep);
    return values_of(*alone);
  }
};

TEST_F(ALocalStep, DividesTheLossByTheReplicasOwnSamples) {
  RoundStrategy strategy(options_of(2), run_.graph, script_);
  FiveSamples whole(run_.data, {.first = 0, .count = 2, .total = 2});
  const StepReport report = train_step(strategy, whole, kStep);
  EXPECT_EQ(values_of(strategy, 0), step_alone({run_.data, {.first = 0, .count = 1, .total = 2}}));
  EXPECT_EQ(values_of(strategy, 1), step_alone({run_.data, {.first = 1, .count = 1, .total = 2}}));

  const auto alone = run_.make_one_device();
  const StepReport expected = train_step(*alone, whole, kStep);
  EXPECT_EQ(report.round_steps, 0);
  EXPECT_EQ(report.scores.num_samples, 5);
  EXPECT_EQ(report.scores.metrics, expected.scores.metrics);
  // 1e-6: the losses of shares are rounded to f32 and added in another order.
  EXPECT_NEAR(report.scores.loss, expected.scores.loss, 1e-6);
}

TEST_F(ALocalStep, OfATaskWithOneReplicaHasADivisorOfItsOwn) {
  const FiveSamples share(run_.data, {.first = 0, .count = 1, .total = 2});
  ASSERT_EQ(share.batch.num_samples, 3);
  ASSERT_EQ(share.batch.loss_divisor, 5);
  RoundStrategy strategy(options_of(1), run_.graph, script_);
  FiveSamples input = share;
  (void)train_step(strategy, input, kStep);
  EXPECT_EQ(values_of(strategy), step_alone(share));
}

TEST_F(ALocalStep, MayHaveNoSamples) {
  RoundStrategy strategy(options_of(4), run_.graph, script_);
  FiveSamples whole(run_.data, {.first = 0, .count = 4, .total = 4});
  const std::vector<float> before = values_of(strategy, 3);
  const StepReport report = train_step(strategy, whole, kStep);
  EXPECT_EQ(values_of(strategy, 3), before) << "shares of 2, 2, 1 and 0 samples";
  EXPECT_EQ(report.scores.num_samples, 5);
  EXPECT_TRUE(std::isfinite(report.scores.loss));
}

}  // namespace
}  // namespace syncopate
