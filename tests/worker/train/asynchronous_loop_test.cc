// Tests the asynchronous loop of one replica with a scripted job.
#include "worker/train/asynchronous_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/train/asynchronous_case.h"

namespace syncopate {
namespace {

class AsynchronousLoop : public testing::Test, protected ScriptedRun {};

TEST_F(AsynchronousLoop, TrainsTheBatchesThatItIsGiven) {
  const std::vector<ps::SampleRange> leases = {{0, 48, 64}, {0, 0, 16}, {0, 80, 84}, {1, 16, 32}};
  const TrainOutcome outcome =
      train([](ScriptedJob& job) { job.assignments_at_end = {kLast}; }, leases);
  EXPECT_EQ(job_->trained, leases);
  EXPECT_EQ(outcome.progress.at.step, 4);
  EXPECT_EQ(outcome.progress.at.samples, 16 + 16 + 4 + 16);
  EXPECT_EQ(outcome.progress.at.position, (ps::DataPosition{1, 32, {}}));
  EXPECT_EQ(run_.display.finished, 1);
}

class OneWorkerAlone : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(OneWorkerAlone, EndsWithTheBitsOfTheSynchronousLoop) {
  const auto& [model, optimizer] = GetParam();
  AsynchronousCase run(model, optimizer,
                       {.kind = ScheduleKind::kCosine, .learning_rate = 0.02, .total_epochs = 2.0});
  const auto synchronous = run.make_one_device();
  const TrainOutcome expected = run.train_synchronously(*synchronous, run.start);
  const std::vector<EvalMetrics> expected_evaluations = std::exchange(run.metrics.evaluations, {});
  const std::vector<StepMetrics> expected_steps = std::exchange(run.metrics.steps, {});

  const auto apart = run.make_scripted();
  ScriptedJob job(*apart, two_epochs());
  job.assignment_after_step[5] = {.snapshot_id = 1, .evaluates = true};
  job.assignments_at_end = {kLast};
  const TrainOutcome found = run.train_apart(*apart, job);

  EXPECT_EQ(found.weights_hash, expected.weights_hash);
  EXPECT_EQ(found.test->loss, expected.test->loss);
  EXPECT_EQ(found.test->metric, expected.test->metric);
  EXPECT_EQ(found.progress.at.step, expected.progress.at.step);
  EXPECT_EQ(found.progress.at.samples, expected.progress.at.samples);
  // The tolerance is 1e-12: the loss is computed from differences of sums instead of sums.
  EXPECT_NEAR(found.train_loss, expected.train_loss, 1e-12);
  ASSERT_EQ(run.metrics.evaluations.size(), expected_evaluations.size());
  EXPECT_EQ(run.metrics.evaluations[0].result.loss, expected_evaluations[0].result.loss);
  EXPECT_EQ(run.metrics.evaluations[0].epoch, expected_evaluations[0].epoch);
  ASSERT_EQ(run.metrics.steps.size(), expected_steps.size());
  for (std::size_t i = 0; i < expected_steps.size(); ++i) {
    EXPECT_EQ(run.metrics.steps[i].step, expected_steps[i].step);
    EXPECT_EQ(run.metrics.steps[i].learning_rate, expected_steps[i].learning_rate);
    EXPECT_EQ(run.metrics.steps[i].metric, expected_steps[i].metric);
    EXPECT_NEAR(run.metrics.steps[i].epoch, expected_steps[i].epoch, 1e-12);
    EXPECT_NEAR(run.metrics.steps[i].loss, expected_steps[i].loss, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, OneWorkerAlone,
                         testing::Values(std::tuple("mlp", "adam"), std::tuple("mlp", "momentum"),
                                         std::tuple("resnet20", "sgd")),
                         [](const auto& parameters) {
                           return std::get<0>(parameters.param) + "_" +
                                  std::get<1>(parameters.param);
                         });

// Other workers train while one worker evaluates, so the values that it requested before are out of
// date.
TEST_F(AsynchronousLoop, CarriesOutAssignmentsAndContinuesWithNewValues) {
  train(
      [](ScriptedJob& job) {
        job.assignment_after_step[2] = {.snapshot_id = 3, .evaluates = true};
        job.assignments_at_end = {{.snapshot_id = 4, .evaluates = true}, kLast};
      },
      batches_in_order(AsynchronousCase::kSamples, AsynchronousCase::kBatch, 1));
  EXPECT_EQ(job_->events,
            strings({"step 0:0", "step 0:16", "read 3", "done 3", "refresh", "step 0:32",
                     "step 0:48", "step 0:64", "read 4", "done 4", "read 7", "done 7"}));
  ASSERT_EQ(run_.metrics.evaluations.size(), 3U);
  EXPECT_EQ(run_.metrics.evaluations[0].step, 2);
  EXPECT_DOUBLE_EQ(run_.metrics.evaluations[0].epoch, 0.4);
  EXPECT_EQ(run_.metrics.evaluations[2].step, 5);
  EXPECT_EQ(run_.display.notes.size(), 3U);
}

TEST_F(AsynchronousLoop, EvaluatesTheSnapshotAndLeavesTheReplicaUnchanged) {
  const auto first = run_.make_one_device();
  const double expected = run_.evaluate(*first).loss;
  const TrainOutcome undisturbed =
      train([](ScriptedJob& job) { job.assignments_at_end = {kLast}; });
  run_.metrics.evaluations.clear();

  const TrainOutcome outcome = train([&](ScriptedJob& job) {
    job.copy = deep_copy(first->snapshot());
    job.assignment_after_step[3] = {.snapshot_id = 1, .evaluates = true};
    job.assignment_after_step[6] = {.snapshot_id = 2, .evaluates = true};
  });
  ASSERT_EQ(run_.metrics.evaluations.size(), 2U);
  EXPECT_EQ(run_.metrics.evaluations[0].result.loss, expected);
  EXPECT_EQ(run_.metrics.evaluations[1].result.loss, expected);
  job_->copy.reset();
  EXPECT_NE(undisturbed.test->loss, expected);
  EXPECT_EQ(run_.evaluate(strategy_->inner()).loss, undisturbed.test->loss);
  EXPECT_FALSE(outcome.test) << "it was not appointed to the end";
}

TEST_F(AsynchronousLoop, WritesACheckpointThatTheSynchronousLoopResumes) {
  const TemporaryFolder folder;
  const auto uninterrupted = run_.make_one_device();
  const TrainOutcome expected = run_.train_synchronously(*uninterrupted, run_.start);

  run_.options.checkpoint_dir = folder.path();
  train([](ScriptedJob& job) {
    job.assignment_after_step[7] = {.snapshot_id = 1, .writes_checkpoint = true};
  });
  EXPECT_NE(std::find(job_->events.begin(), job_->events.end(), "read 1 with slots"),
            job_->events.end());
  const auto resumed = run_.make_one_device();
  const auto path = newest_checkpoint(folder.path());
  ASSERT_EQ(path, checkpoint_path(folder.path(), 7));
  const Snapshot target = deep_copy(resumed->snapshot());
  const CheckpointInfo info = load_checkpoint(*path, run_.graph, target, run_.optimizer, true);
  EXPECT_EQ(info.progress.at.samples, 7 * AsynchronousCase::kBatch);
  EXPECT_EQ(info.progress.at.position, (ps::DataPosition{1, 32, {}}));
  EXPECT_EQ(info.progress.data, "synthetic");
  EXPECT_EQ(info.progress.seed, 5U);
  resumed->restore(target);
  const TrainOutcome found = run_.train_synchronously(*resumed, info.progress);
  EXPECT_EQ(found.weights_hash, expected.weights_hash);
  EXPECT_EQ(found.test->loss, expected.test->loss);
}

TEST_F(AsynchronousLoop, KeepsTheNewestCheckpointsOnly) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  run_.options.keep_checkpoints = 2;
  const TrainOutcome outcome = train([](ScriptedJob& job) {
    for (const std::int64_t step : {2, 4, 6}) {
      job.assignment_after_step[step] = {.snapshot_id = static_cast<std::uint64_t>(step),
                                         .writes_checkpoint = true};
    }
    job.assignments_at_end = {
        {.snapshot_id = 7, .evaluates = true, .writes_checkpoint = true, .is_final = true}};
  });
  EXPECT_EQ(folder.num_files(), 2U);
  EXPECT_EQ(outcome.checkpoint, checkpoint_path(folder.path(), 10));
  EXPECT_FALSE(outcome.stopped_by);
}

TEST(DivergingAsynchronousLoop, NamesStepRateAndCheckpoint) {
  const TemporaryFolder folder;
  AsynchronousCase run("mlp", "sgd", {.learning_rate = 1e30});
  run.options.checkpoint_dir = folder.path();
  const auto strategy = run.make_scripted();
  ScriptedJob job(*strategy, two_epochs());
  const std::string text = message_of<DivergenceError>([&] { run.train_apart(*strategy, job); });
  EXPECT_TRUE(contains(text, "the loss is", "with learning rate 1e+30; no checkpoint was written",
                       "at step " + std::to_string(job.trained.size())));
  EXPECT_EQ(run.display.finished, 1);
}

TEST_F(AsynchronousLoop, WritesNoCheckpointOfValuesThatAreNotFinite) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  EXPECT_TRUE(contains(
      message_of<DivergenceError>([&] {
        train([&](ScriptedJob& job) {
          job.copy = deep_copy(strategy_->snapshot());
          job.copy->slots.back().values.f32().back() = std::numeric_limits<float>::infinity();
          job.assignment_after_step[4] = {.snapshot_id = 1, .writes_checkpoint = true};
        });
      }),
      "slots are no longer finite at step 4"));
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST_F(AsynchronousLoop, CountsTheStepsOfAllWorkersInLinesAndProgress) {
  run_.options.log_every_steps = 5;
  train([](ScriptedJob& job) {
    job.steps_of_others = 2;  // so the steps are 3, 6, 9, ... 30
    job.assignments_at_end = {kLast};
  });
  std::vector<std::int64_t> steps;
  for (const StepMetrics& line : run_.metrics.steps) steps.push_back(line.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{6, 12, 15, 21, 27, 30}));
  EXPECT_EQ(run_.metrics.steps[1].samples, 12 * AsynchronousCase::kBatch);
  EXPECT_EQ(run_.display.states.size(), 10U);
  EXPECT_EQ(run_.display.states.back().step, 30);
}

TEST_F(AsynchronousLoop, WritesNothingWhileAnotherWorkerReports) {
  train([](ScriptedJob& job) { job.is_reporter_in_script = false; });
  EXPECT_TRUE(run_.metrics.steps.empty());
  EXPECT_TRUE(run_.display.states.empty());
  EXPECT_TRUE(run_.display.notes.empty());
}

TEST_F(AsynchronousLoop, ReturnsTheStalenessOfTheLastSnapshot) {
  const TrainOutcome outcome = train([](ScriptedJob& job) {
    Assignment last = kLast;
    last.staleness = {{0, ps::StalenessHistogram::of({1, 2}, 2.0, 1)}};
    job.assignments_at_end = {last};
  });
  ASSERT_EQ(outcome.staleness.size(), 1U);
  EXPECT_EQ(outcome.staleness[0].histogram.count(), 3);
}

TEST_F(AsynchronousLoop, EvaluatesWhenThereIsNothingToTrain) {
  const TrainOutcome outcome =
      train([](ScriptedJob& job) { job.assignments_at_end = {kLast}; }, {});
  const auto first = run_.make_one_device();
  EXPECT_EQ(outcome.test->loss, run_.evaluate(*first).loss);
  EXPECT_EQ(outcome.seconds, 0.0);
  EXPECT_TRUE(std::isnan(outcome.train_loss));
  EXPECT_TRUE(run_.metrics.steps.empty());
  EXPECT_EQ(run_.metrics.begins.size(), 1U) << "its lines must say when they were written";
}

}  // namespace
}  // namespace syncopate
