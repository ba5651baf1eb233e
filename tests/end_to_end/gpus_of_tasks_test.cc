// Tests which GPUs the tasks of a job train on, as train and doctor report them. The GPUs are
// emulated, because the GPUs that a real machine shows cannot be configured.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/end_to_end/support/gpu_program.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

const Arguments kSmall = as_words("--model mlp --data synthetic:1x8x8:4:640 --threads 1");
const Arguments kNetwork = Arguments{"--devices", "cuda"} + kSmall;
const Arguments kTogether{"--strategy", "multi-worker-mirrored"};

class GpusOfTasks : public testing::Test {
 protected:
  // Runs two tasks of one host with two replicas each, with the variables that torchrun sets.
  static std::vector<ProgramResult> train_two(const std::vector<Arguments>& emulation) {
    const Port port(false);
    const std::string number = port.endpoint().substr(port.endpoint().rfind(':') + 1);
    std::vector<std::unique_ptr<RunningProgram>> tasks;
    for (int rank = 0; rank < 2; ++rank) {
      const Arguments place{"RANK=" + std::to_string(rank),
                            "LOCAL_RANK=" + std::to_string(rank),
                            "WORLD_SIZE=2",
                            "LOCAL_WORLD_SIZE=2",
                            "MASTER_ADDR=127.0.0.1",
                            "MASTER_PORT=" + number};
      tasks.push_back(std::make_unique<RunningProgram>(
          gpu_program(Arguments{"train", "--replicas", "2", "--batch-size", "16"} + few_steps(2) +
                          kTogether + kNetwork,
                      place + emulation[static_cast<std::size_t>(rank)])));
    }
    std::vector<ProgramResult> results;
    for (const auto& task : tasks) results.push_back(task->wait());
    for (const ProgramResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
    return results;
  }

  static ProgramResult run_doctor(int workers, const Arguments& flags,
                                  const Arguments& emulation = {}) {
    return run_on_gpus(Arguments{"launch", "--workers", std::to_string(workers), "--", "doctor"} +
                           kTogether + kNetwork + flags,
                       emulation);
  }
};

TEST_F(GpusOfTasks, AreAllThatATaskSeesWhereTheOthersSeeOthers) {
  const std::vector<ProgramResult> results =
      train_two({{"EMULATED_GPUS=2"}, {"EMULATED_GPUS=2", "EMULATED_GPUS_FROM=2"}});
  for (const ProgramResult& result : results) {
    EXPECT_FALSE(contains(result.err, "summed there")) << "a GPU for each replica: " << result.err;
    EXPECT_FALSE(contains(result.err, "tasks share"));
  }
}

TEST_F(GpusOfTasks, AreSharedWhereAllSeeEqualOnesAndEachTaskNamesItsOwn) {
  const Arguments four{"EMULATED_GPUS=4"};
  const std::vector<ProgramResult> results = train_two({four, four});
  EXPECT_FALSE(contains(results[0].err, "summed there"));
  EXPECT_TRUE(
      contains(results[0].err, "2 tasks share 4 GPUs of this host: this task has cuda:0, cuda:1"));
  EXPECT_TRUE(
      contains(results[1].err, "2 tasks share 4 GPUs of this host: this task has cuda:2, cuda:3"));
}

TEST_F(GpusOfTasks, AreAcceptedByDoctorWhereEachTaskHasItsOwn) {
  for (const Arguments& visible : {Arguments{}, Arguments{"CUDA_VISIBLE_DEVICES=0,1"}}) {
    const ProgramResult result = run_doctor(2, {}, visible);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
}

TEST_F(GpusOfTasks, AreReportedByDoctorWhereTwoTasksShareOneUnlessRequested) {
  for (const Arguments& visible : {Arguments{}, Arguments{"CUDA_VISIBLE_DEVICES=0,1"}}) {
    const ProgramResult result = run_doctor(3, {}, visible);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_TRUE(contains(result.out, "and worker 2 have the same GPU emulated:0"));
    const ProgramResult meant = run_doctor(3, {"--share-devices"}, visible);
    EXPECT_EQ(meant.exit_code, 0) << meant.out << meant.err;
  }
}

TEST_F(GpusOfTasks, AreAllUsedByReplicasOfOneProcess) {
  const auto train = [](const std::string& strategy, const Arguments& more) {
    return run_on_gpus(Arguments{"train", "--strategy", strategy, "--batch-size", "12"} +
                           few_steps(2) + kSmall + more,
                       {"EMULATED_GPUS=3"});
  };
  for (const char* strategy : {"mirrored", "central-storage"}) {
    const ProgramResult all = train(strategy, {"--devices", "cuda"});
    EXPECT_TRUE(contains(all.err, "3 replicas in 1 task"));
    const ProgramResult named = train(strategy, {"--devices", "cuda", "--replicas", "2"});
    EXPECT_TRUE(contains(named.err, "2 replicas in 1 task"));
    const ProgramResult listed = train(strategy, {"--devices", "cuda:0,cuda:2"});
    EXPECT_TRUE(contains(listed.err, "2 replicas in 1 task"));
  }
}

TEST_F(GpusOfTasks, AreOnlyThoseThatTheBuildHasCodeFor) {
  const Arguments first_is_old{"EMULATED_GPUS=3", "EMULATED_GPUS_MAJOR=79"};
  const ProgramResult alone = run_on_gpus(
      as_words("train --strategy mirrored --batch-size 12 --devices cuda") + few_steps(2) + kSmall,
      first_is_old);
  EXPECT_TRUE(contains(alone.err, "left out cuda:0: an emulated GPU has compute capability 7.0",
                       "2 replicas in 1 task"));
  const std::vector<ProgramResult> results = train_two({first_is_old, first_is_old});
  EXPECT_TRUE(contains(results[0].err, "this task has cuda:1"));
  EXPECT_TRUE(contains(results[1].err, "this task has cuda:2"));
}

TEST_F(GpusOfTasks, AreTheWorkersThatMayBeDelayed) {
  const auto delay = [](const std::string& slow) {
    return run_on_gpus(as_words("train --strategy mirrored --batch-size 12 --devices cuda "
                                "--service-time constant:1 --slow",
                                slow) +
                           few_steps(2) + kSmall,
                       {"EMULATED_GPUS=3"});
  };
  successful(delay("worker=2,factor=2"));
  expect_failure(delay("worker=3,factor=2"), 2, {"--slow worker=3: expected a worker from 0 to 2"});
}

TEST_F(GpusOfTasks, AreRefusedBeforeTrainingWhereTheBuildHasNoCodeForThem) {
  const Arguments v100s{"EMULATED_GPUS_MAJOR=7"};
  const ProgramResult train = run_on_gpus(Arguments{"train"} + few_steps(2) + kNetwork, v100s);
  EXPECT_EQ(train.exit_code, 2);
  EXPECT_TRUE(
      contains(train.err, "cuda:0: an emulated GPU has compute capability 7.0, and CUDA 13"));
  const ProgramResult doctor = run_doctor(2, {}, v100s);
  EXPECT_TRUE(contains(doctor.out, "compute capability 7.0"));
  const ProgramResult info = run_on_gpus({"info"}, v100s);
  EXPECT_TRUE(contains(info.out, "not usable:"));
}

}  // namespace
}  // namespace syncopate::test
