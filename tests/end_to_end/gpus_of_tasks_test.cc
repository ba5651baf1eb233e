// Tests which GPUs the tasks of a job train on, as train and doctor report them. The GPUs are
// emulated, because the GPUs that a real machine shows cannot be configured.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/end_to_end/support/gpu_program.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/training_runs.h"

namespace syncopate::test {
namespace {

const Arguments kSmall{"--model", "mlp", "--data", "synthetic:1x8x8:4:640", "--threads", "1"};
const Arguments kNetwork = Arguments{"--devices", "cuda"} + kSmall;
const Arguments kTogether{"--strategy", "multi-worker-mirrored"};

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

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
    EXPECT_FALSE(has(result.err, "summed there")) << "a GPU for each replica: " << result.err;
    EXPECT_FALSE(has(result.err, "tasks share")) << result.err;
  }
}

TEST_F(GpusOfTasks, AreSharedWhereAllSeeEqualOnesAndEachTaskNamesItsOwn) {
  const Arguments four{"EMULATED_GPUS=4"};
  const std::vector<ProgramResult> results = train_two({four, four});
  EXPECT_FALSE(has(results[0].err, "summed there")) << results[0].err;
  EXPECT_TRUE(
      has(results[0].err, "2 tasks share 4 GPUs of this host: this task has cuda:0, cuda:1"))
      << results[0].err;
  EXPECT_TRUE(
      has(results[1].err, "2 tasks share 4 GPUs of this host: this task has cuda:2, cuda:3"))
      << results[1].err;
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
    EXPECT_TRUE(has(result.out, "and worker 2 have the same GPU emulated:0")) << result.out;
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
    EXPECT_TRUE(has(all.err, "3 replicas in 1 task")) << all.err;
    const ProgramResult named = train(strategy, {"--devices", "cuda", "--replicas", "2"});
    EXPECT_TRUE(has(named.err, "2 replicas in 1 task")) << named.err;
    const ProgramResult listed = train(strategy, {"--devices", "cuda:0,cuda:2"});
    EXPECT_TRUE(has(listed.err, "2 replicas in 1 task")) << listed.err;
  }
}

TEST_F(GpusOfTasks, AreOnlyThoseThatTheBuildHasCodeFor) {
  const Arguments first_is_old{"EMULATED_GPUS=3", "EMULATED_GPUS_MAJOR=79"};
  const ProgramResult alone = run_on_gpus(
      Arguments{"train", "--strategy", "mirrored", "--batch-size", "12", "--devices", "cuda"} +
          few_steps(2) + kSmall,
      first_is_old);
  EXPECT_TRUE(has(alone.err, "left out cuda:0: an emulated GPU has compute capability 7.0"))
      << alone.err;
  EXPECT_TRUE(has(alone.err, "2 replicas in 1 task")) << alone.err;
  const std::vector<ProgramResult> results = train_two({first_is_old, first_is_old});
  EXPECT_TRUE(has(results[0].err, "this task has cuda:1")) << results[0].err;
  EXPECT_TRUE(has(results[1].err, "this task has cuda:2")) << results[1].err;
}

TEST_F(GpusOfTasks, AreTheWorkersThatMayBeDelayed) {
  const auto delay = [](const std::string& slow) {
    return run_on_gpus(
        Arguments{"train", "--strategy", "mirrored", "--batch-size", "12", "--devices", "cuda",
                  "--service-time", "constant:1", "--slow", slow} +
            few_steps(2) + kSmall,
        {"EMULATED_GPUS=3"});
  };
  const ProgramResult last = delay("worker=2,factor=2");
  EXPECT_EQ(last.exit_code, 0) << last.err;
  const ProgramResult missing = delay("worker=3,factor=2");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_TRUE(has(missing.err, "--slow worker=3: expected a worker from 0 to 2")) << missing.err;
}

TEST_F(GpusOfTasks, AreRefusedBeforeTrainingWhereTheBuildHasNoCodeForThem) {
  const Arguments v100s{"EMULATED_GPUS_MAJOR=7"};
  const ProgramResult train = run_on_gpus(Arguments{"train"} + few_steps(2) + kNetwork, v100s);
  EXPECT_EQ(train.exit_code, 2);
  EXPECT_TRUE(has(train.err, "cuda:0: an emulated GPU has compute capability 7.0, and CUDA 13"))
      << train.err;
  const ProgramResult doctor = run_doctor(2, {}, v100s);
  EXPECT_TRUE(has(doctor.out, "compute capability 7.0")) << doctor.out;
  const ProgramResult info = run_on_gpus({"info"}, v100s);
  EXPECT_TRUE(has(info.out, "not usable:")) << info.out;
}

}  // namespace
}  // namespace syncopate::test
