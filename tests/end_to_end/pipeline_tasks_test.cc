// Tests --strategy pipeline whose stages are tasks: bits, checkpoints, failures and messages.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments stages_of(int tasks, const Arguments& more = {}) {
  return as_words("launch --workers", std::to_string(tasks), "-- train --strategy pipeline") + more;
}

const Arguments kOneDevice{"train"};
const Arguments kDense = as_words(
    "--model mnist-cnn --data synthetic:1x28x28:10:640 --batch-size 32 --accumulate 4 --optimizer "
    "adam --threads 1 --no-progress");

struct StagesCase {
  const char* name;
  int tasks;
  const char* model;
  const char* data;
  Arguments more;
};
std::ostream& operator<<(std::ostream& out, const StagesCase& its) { return out << its.name; }

class StagesInTasks : public testing::TestWithParam<StagesCase> {};

TEST_P(StagesInTasks, TrainTheBitsOfOneDevice) {
  const StagesCase& its = GetParam();
  TrainingRuns runs;
  const Arguments run = as_words("--model", its.model, "--data", its.data,
                                 "--batch-size 24 --accumulate 3 --steps 10 --optimizer momentum "
                                 "--threads 1 --no-progress --cache-dir",
                                 SYNCOPATE_TEST_CACHE);
  const nlohmann::json expected = runs.summary_of(kOneDevice, run);
  const nlohmann::json found = runs.summary_of(stages_of(its.tasks, its.more), run);
  EXPECT_EQ(found.at("weights_hash"), expected.at("weights_hash"));
  EXPECT_EQ(found.at("test_loss"), expected.at("test_loss"));
  EXPECT_EQ(found.at("samples"), expected.at("samples"));
  // The loss of a step is summed over the tasks as a number of 2^-42.
  EXPECT_NEAR(found.at("train_loss").get<double>(), expected.at("train_loss").get<double>(), 1e-9);
  EXPECT_EQ(found.at("stage_idle_fractions").size(), static_cast<std::size_t>(its.tasks));
}

INSTANTIATE_TEST_SUITE_P(
    Each, StagesInTasks,
    testing::Values(
        StagesCase{"Mlp2Shm", 2, "mlp", "synthetic:1x28x28:10:480", {"--transport", "shm"}},
        StagesCase{"Cnn2Tcp", 2, "mnist-cnn", "synthetic:1x28x28:10:480", {"--transport", "tcp"}},
        StagesCase{"Cnn3Shm", 3, "mnist-cnn", "synthetic:1x28x28:10:480", {"--transport", "shm"}},
        StagesCase{"Fcn3Tcp", 3, "fcn", "shapes", {"--transport", "tcp"}},
        StagesCase{"ResNet2Shm", 2, "resnet20", "synthetic:3x32x32:10:240", {}},
        StagesCase{"ResNet3Tcp", 3, "resnet20", "synthetic:3x32x32:10:240", {"--transport", "tcp"}},
        StagesCase{"CnnOverASlowLink",
                   2,
                   "mnist-cnn",
                   "synthetic:1x28x28:10:480",
                   {"--transport", "tcp", "--link-delay", "2ms"}}),
    [](const auto& parameters) { return std::string(parameters.param.name); });

// The norm of all gradients and the moving average need all stages.
TEST(StagesOfSeveralTasks, ClipAndAverageAsOneDeviceDoes) {
  TrainingRuns runs;
  const Arguments run = kDense + as_words("--steps 12 --clip-norm 0.5 --ema 0.9");
  const nlohmann::json expected = runs.summary_of(kOneDevice, run);
  const nlohmann::json found = runs.summary_of(stages_of(3), run);
  EXPECT_EQ(found.at("weights_hash"), expected.at("weights_hash"));
  EXPECT_EQ(found.at("test_loss"), expected.at("test_loss"));
}

TEST(ACheckpointOfSeveralStages, IsTheOneOfOneProcess) {
  TrainingRuns runs;
  const auto files_of = [&](const Arguments& where, const std::string& folder) {
    runs.summary_of(where,
                    kDense + as_words("--steps 11 --ema 0.9 --checkpoint-dir", runs / folder));
    return read_text(runs / folder / "checkpoint-000000000011.safetensors");
  };
  const Arguments in_one = as_words("train --strategy pipeline --stages 3 --share-devices");
  const std::string expected = files_of(in_one, "one");
  ASSERT_FALSE(expected.empty());
  EXPECT_TRUE(files_of(stages_of(3), "three") == expected);
}

TEST(ACheckpointOfSeveralStages, IsResumedByOtherStrategiesAndNumbersOfTasks) {
  TrainingRuns runs;
  const nlohmann::json expected = runs.summary_of(kOneDevice, kDense + Arguments{"--steps", "30"});
  const Arguments kept{"--checkpoint-dir", runs / "ck", "--resume"};
  const auto go_on = [&](const Arguments& where, const char* steps) {
    return runs.summary_of(where, kDense + Arguments{"--steps", steps} + kept);
  };
  go_on(stages_of(2), "7");
  go_on(kOneDevice, "12");
  go_on(stages_of(3, {"--transport", "tcp"}), "19");
  go_on({"train", "--strategy", "pipeline", "--share-devices"}, "24");
  EXPECT_EQ(go_on(stages_of(2), "30").at("weights_hash"), expected.at("weights_hash"));
}

// Returns the flags of a job that writes one line of metrics for each step.
Arguments small_pipeline(const TemporaryFolder& scratch, const Arguments& more) {
  return as_words(
             "--model mnist-cnn --data synthetic:1x28x28:10:2000 --threads 1 --batch-size 24 "
             "--accumulate 4 --log-every 1 --no-progress --metrics",
             scratch / "m.jsonl") +
         more;
}

class AStage : public testing::TestWithParam<WorkerFault> {};

TEST_P(AStage, ThatFailsEndsAllOthersWithinFiveSeconds) {
  const WorkerFault& fault = GetParam();
  const TemporaryFolder scratch;
  const ProgramResult result = fail_after_50_steps(
      stages_of(3) + small_pipeline(scratch, as_words("--epochs 100000 --eval-every 0 --transport",
                                                      fault.transport)),
      scratch / "m.jsonl", fault);
  // Stage 1 waits for both others; what it waited for is in its line.
  if (fault.worker != 1) {
    const std::string line = line_of_worker(result, 1);
    EXPECT_TRUE(contains(line, "rank 1 waited for the "));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, AStage,
                         testing::Values(WorkerFault{"Killed0Shm", 0, SIGKILL, "shm"},
                                         WorkerFault{"Killed2Shm", 2, SIGKILL, "shm"},
                                         WorkerFault{"Killed1Tcp", 1, SIGKILL, "tcp"},
                                         WorkerFault{"Killed2Tcp", 2, SIGKILL, "tcp"},
                                         WorkerFault{"Stopped1Shm", 1, SIGSTOP, "shm"},
                                         WorkerFault{"Stopped0Tcp", 0, SIGSTOP, "tcp"}),
                         [](const auto& parameters) { return std::string(parameters.param.name); });

// The other stages wait while the chief writes a checkpoint, which is no part of a step.
TEST(StagesOfSeveralTasks, CountNoCheckpointAsTraining) {
  TrainingRuns runs;
  const nlohmann::json summary = runs.summary_of(
      stages_of(2), as_words("--model mlp --data synthetic:1x28x28:10:480 --batch-size 4 --steps "
                             "60 --checkpoint-every 1 --checkpoint-dir",
                             runs / "ck", "--eval-every 0 --threads 1 --no-progress"));
  constexpr double kClocks = 0.1;  // the two tasks time a step apart
  for (const double idle : summary.at("stage_idle_fractions")) EXPECT_LT(idle, 1.0 + kClocks);
}

TEST(AKilledStage, ResumesTheLastCheckpointBitForBit) {
  TrainingRuns runs;
  const TemporaryFolder scratch;
  const auto steps = [&](const std::string& folder) {
    return small_pipeline(
        scratch, as_words("--steps 100 --checkpoint-every 1 --checkpoint-dir", scratch / folder));
  };
  RunningProgram launch(syncopate_command(
      as_words("launch --workers 3 --restart 1 -- train --strategy pipeline") + steps("killed")));
  const auto victim = worker_of(launch.pid(), 1);
  ASSERT_TRUE(victim);
  ASSERT_TRUE(launch.wait_until_file_has(scratch / "m.jsonl", "\"step\":30,"));
  ASSERT_EQ(kill(*victim, SIGKILL), 0);
  const ProgramResult result = successful(launch.wait());
  EXPECT_TRUE(contains(result.err, "resumed from"));
  const nlohmann::json found = summary_of(scratch / "m.jsonl");
  successful(run_syncopate(kOneDevice + steps("whole")));
  EXPECT_EQ(found.at("weights_hash"), summary_of(scratch / "m.jsonl").at("weights_hash"));
}

TEST(ARequestToStop, ThatReachesOneStageStopsAllAfterACheckpoint) {
  const TemporaryFolder scratch;
  RunningProgram launch(syncopate_command(
      stages_of(2) +
      small_pipeline(scratch,
                     as_words("--epochs 100000 --eval-every 0 --checkpoint-dir", scratch / "ck"))));
  const auto asked = worker_of(launch.pid(), 1);
  ASSERT_TRUE(asked);
  ASSERT_TRUE(launch.wait_until_file_has(scratch / "m.jsonl", "\"step\":50,"));
  ASSERT_EQ(kill(*asked, SIGUSR1), 0);
  const ProgramResult result = launch.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

TEST(StagesOfSeveralTasks, RefuseContradictions) {
  const auto error_of = [](const Arguments& flags) {
    const ProgramResult run = run_syncopate(stages_of(2, flags) + kDense);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    return run.err;
  };
  EXPECT_TRUE(contains(error_of({"--stages", "3"}), "--stages 3: launch started 2 tasks"));
  EXPECT_TRUE(contains(error_of({"--cut", "conv1,fc1"}), "--cut conv1,fc1: gives 3 stages"));
  EXPECT_TRUE(contains(error_of({"--cut", "conv7"}), "cannot be cut there; choose from conv1, "));
  const ProgramResult many = run_syncopate(stages_of(4) + kDense);
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_TRUE(contains(many.err,
                       "4 tasks: network mnist-cnn cannot be cut into 4 stages with parameters; "
                       "it gives at most 3"));
  EXPECT_TRUE(contains(error_of({"--collective", "nccl"}), "--collective nccl: the stages"));
}

}  // namespace
}  // namespace syncopate::test
