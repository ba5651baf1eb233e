// Tests jobs with workers that push displacements.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

// 32 batches of 16 samples per epoch.
const Arguments kModel = as_words(
    "--model mlp --data synthetic:1x8x8:4:512 --batch-size-per-replica 16 --threads 1 "
    "--no-progress");
const Arguments kRounds = as_words("--push displacement --sync-every 5");

class JobsThatPushDisplacements : public testing::TestWithParam<const char*> {};

// No round of 3 workers ends with the data. Every sample is in one push.
TEST_P(JobsThatPushDisplacements, LearnAndTrainEverySampleOnce) {
  TrainingRuns runs;
  const int servers = std::string(GetParam()) == "quorum" ? 1 : 2;
  const auto summary = runs.summary_of(
      parameter_servers({.workers = 3, .servers = servers}),
      kModel + kRounds +
          as_words("--epochs 4 --learning-rate 0.05 --optimizer sgd --outer-learning-rate 0.7") +
          as_words("--consistency", std::string(GetParam())));
  EXPECT_EQ(summary.at("steps"), 128);
  EXPECT_EQ(summary.at("samples"), 4 * 512);
  EXPECT_GE(summary.at("test_accuracy"), 0.95);
  const nlohmann::json settings = runs.lines("begin").front().at("local_updates");
  EXPECT_EQ(settings.at("push"), "displacement");
  EXPECT_EQ(settings.at("outer_learning_rate"), 0.7);
}

INSTANTIATE_TEST_SUITE_P(Under, JobsThatPushDisplacements,
                         testing::Values("async", "ssp", "quorum"));

class DisplacementsWithFlags : public testing::TestWithParam<Arguments> {};

// These flags act on the steps of a worker, or on its messages.
TEST_P(DisplacementsWithFlags, Learn) {
  TrainingRuns runs;
  const auto summary = runs.summary_of(
      parameter_servers({.workers = 3, .servers = 1}),
      kModel + kRounds +
          as_words("--epochs 4 --learning-rate 0.05 --optimizer momentum --consistency",
                   GetParam()));
  EXPECT_EQ(summary.at("steps"), 128);
  EXPECT_GE(summary.at("test_accuracy"), 0.95);
}

INSTANTIATE_TEST_SUITE_P(
    Each, DisplacementsWithFlags,
    testing::Values(as_words("async --compress bf16"), as_words("async --compress topk:0.1"),
                    as_words("quorum --compress topk:0.1"),
                    as_words("async --clip-norm 0.5 --weight-decay 0.0001"),
                    as_words("async --lr-schedule cosine --warmup-epochs 0.5")));

// The statistics of batch norm are not in the displacements.
TEST(AJobThatPushesDisplacements, AveragesTheStatisticsOfBatchNorm) {
  TrainingRuns runs;
  const auto summary = runs.summary_of(
      parameter_servers({.workers = 2, .servers = 1}),
      as_words(
          "--model resnet20 --data synthetic:3x8x8:4:256 --batch-size-per-replica 16 --threads "
          "1 --no-progress --epochs 4 --learning-rate 0.02 --optimizer momentum") +
          kRounds);
  EXPECT_EQ(summary.at("steps"), 64);
  EXPECT_GE(summary.at("test_accuracy"), 0.9);
}

TEST(AJobThatPushesDisplacements, PushesTheStepsOfItsRoundsWhenItStopsAndResumes) {
  const TemporaryFolder scratch;
  // The rounds are longer than the run.
  const Arguments job =
      parameter_servers({.workers = 2, .servers = 2},
                        kModel + as_words("--push displacement --optimizer adam --log-every 1 "
                                          "--checkpoint-dir",
                                          scratch / "ck"));
  RunningProgram program(
      syncopate_command(job + as_words("--sync-every 1000000 --steps 100000000 --service-time "
                                       "constant:1 --metrics",
                                       scratch / "m.jsonl")));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"begin\"", 1));
  program.send(SIGTERM);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  const std::vector<std::string> checkpoints = names_in(scratch / "ck");
  ASSERT_EQ(checkpoints.size(), 1U);
  const int step = std::stoi(checkpoints.back().substr(std::string("checkpoint-").size(), 12));
  EXPECT_GE(step, 1);
  const ProgramResult rest = successful(run_syncopate(
      job + as_words("--steps", std::to_string(step + 90), "--sync-every",
                     std::to_string(step + 90), "--resume --metrics", scratch / "rest.jsonl")));
  const nlohmann::json summary = summary_of(scratch / "rest.jsonl");
  EXPECT_EQ(summary.at("steps"), step + 90);
  EXPECT_EQ(summary.at("samples"), (step + 90) * 16);
  EXPECT_TRUE(contains(rest.out + rest.err, "each worker starts at zero")) << rest.out;
}

TEST(ARoundOfDisplacements, IsNotLongerThanTheRun) {
  const ProgramResult result =
      run_syncopate(as_words("train --strategy central-storage --consistency async") + kModel +
                    as_words("--push displacement --sync-every 41 --steps 40"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "--sync-every 41: the whole run has 40 steps")) << result.err;
}

// The first push would come after 5 steps.
TEST(ARoundOfDisplacements, ThatDivergesNamesItsStep) {
  const ProgramResult result = run_syncopate(
      as_words("train --strategy central-storage --consistency async --learning-rate 1e30") +
      kModel + kRounds);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err, "at step 2, with learning rate 1e+30")) << result.err;
}

// One worker, so that nothing depends on timing. The checkpoint is within the 4 displacements.
TEST(ACheckpointOfDisplacements, ContinuesTheSumOfDelayedNesterov) {
  TrainingRuns runs;
  const auto where = parameter_servers({.workers = 1, .servers = 2});
  const Arguments flags =
      kModel + kRounds + as_words("--optimizer sgd --outer delayed-nesterov:4 --eval-every 0");
  const auto whole = runs.summary_of(where, flags + as_words("--steps 60"));
  const Arguments folder = as_words("--checkpoint-dir", runs / "ck");
  runs.train(where, flags + folder + as_words("--steps 30"));
  const auto resumed = runs.summary_of(where, flags + folder + as_words("--steps 60 --resume"));
  EXPECT_EQ(resumed.at("weights_hash"), whole.at("weights_hash"));
}

TEST(ACheckpointOfDisplacements, GivesOtherStrategiesItsValues) {
  TrainingRuns runs;
  const auto trained = [&](const Arguments& optimizer, const std::string& folder) {
    const Arguments flags = kModel + optimizer + as_words("--checkpoint-dir", runs / folder);
    runs.train(parameter_servers({.workers = 2, .servers = 1}),
               flags + kRounds + as_words("--steps 32 --outer diloco"));
    return flags;
  };
  const Arguments sgd = trained(as_words("--optimizer sgd"), "sgd");
  const auto resumed = runs.summary_of(one_device(), sgd + as_words("--steps 40 --resume"));
  EXPECT_EQ(resumed.at("steps"), 40);
  const Arguments adam = trained(as_words("--optimizer adam"), "adam");
  const ProgramResult refused =
      run_syncopate(one_device() + adam + as_words("--steps 40 --resume"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "has no state of the optimizer")) << refused.err;
  const auto from_values = runs.summary_of(
      one_device(), kModel + as_words("--optimizer adam --steps 40 --init-from", runs / "adam"));
  EXPECT_EQ(from_values.at("steps"), 40);
}

}  // namespace
}  // namespace syncopate::test
