// Tests NCCL between the tasks of a job through the program: the values that it sums, and that a
// task that dies, stops or cannot begin ends all others in time, with a line that names the task.
// The test is linked for real GPUs and for emulated ones, whose NCCL sums in memory that the tasks
// share.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tests/end_to_end/support/checkpoint_values.h"
#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/gpu_program.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments job(int workers, const std::string& collective) {
  return multi_worker(workers) +
         as_words("--collective", collective,
                  "--devices cuda --deterministic --model mlp --data synthetic:1x12x12:10:480");
}

class NcclBetweenTasksWithAGpuEach : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_fewer_gpus_than(2); !why.empty()) GTEST_SKIP() << why;
  }

  // Trains ten steps and returns the parameter values after the last step.
  std::vector<float> train(const Arguments& how, const Arguments& emulation = {}) {
    const std::string folder = dir_ / ("ck" + std::to_string(runs_++));
    const ProgramResult result = successful(
        run_on_gpus(how + few_steps(10) + Arguments{"--checkpoint-dir", folder}, emulation));
    output_ = result.err;
    return newest_checkpoint_values(folder);
  }

  // Returns the flags of a job without an end, whose metrics have one line for each step.
  Arguments endless(int workers) const {
    return job(workers, "nccl") + few_steps(1'000'000) +
           as_words("--log-every 1 --eval-every 0 --metrics", dir_ / "m.jsonl");
  }

  TemporaryFolder dir_;
  int runs_ = 0;
  std::string output_;  // the output of the last run
};

// Returns the error lines that this worker printed before its end.
std::vector<std::string> last_words(const ProgramResult& result, int worker) {
  const std::string prefix = "[worker " + std::to_string(worker) + "] syncopate: ";
  std::vector<std::string> lines;
  for (std::size_t at = 0; (at = result.err.find(prefix, at)) != std::string::npos;) {
    const std::size_t end = result.err.find('\n', at);
    lines.push_back(result.err.substr(at, end - at));
    at = end;
  }
  return lines;
}

void expect_one_line(const ProgramResult& result, int worker,
                     const std::vector<std::string>& words) {
  const std::vector<std::string> lines = last_words(result, worker);
  ASSERT_EQ(lines.size(), 1U) << "worker " << worker << ":\n" << result.err;
  for (const std::string& word : words) {
    EXPECT_TRUE(contains(lines.front(), word)) << word << " in: " << lines.front();
  }
}

std::string rank(int worker) { return "rank " + std::to_string(worker) + " (host "; }

// The sum of two numbers is the same in either order, so NCCL gives the bits of the ring, which
// sums on the host.
TEST_F(NcclBetweenTasksWithAGpuEach, SumsToTheBitsOfTheRing) {
  const std::vector<float> ring = train(job(2, "ring"));
  ASSERT_FALSE(ring.empty());
  EXPECT_EQ(train(job(2, "nccl")), ring);
  EXPECT_EQ(train(job(2, "auto")), ring);
  EXPECT_FALSE(contains(output_, "summed there"));
}

TEST_F(NcclBetweenTasksWithAGpuEach, JoinsFourGpusOfTwoTasks) {
  const Arguments four{"EMULATED_GPUS=4"};
  if (!is_emulated()) {
    if (const std::string why = why_fewer_gpus_than(4); !why.empty()) GTEST_SKIP() << why;
  }
  const std::vector<float> ring = train(job(2, "ring") + Arguments{"--replicas", "2"}, four);
  const std::vector<float> nccl = train(job(2, "nccl") + Arguments{"--replicas", "2"}, four);
  ASSERT_EQ(nccl.size(), ring.size());
  // The tolerance is 1e-3: NCCL promises no order of additions; the order of the ring depends on an
  // element's place.
  EXPECT_LE(relative_distance(nccl, ring), 1e-3);
}

TEST_F(NcclBetweenTasksWithAGpuEach, ResumesTheLastCheckpointBitForBitAfterAFailure) {
  const auto run = [&](const std::string& name, int steps) {
    return job(2, "nccl") + few_steps(steps) +
           as_words("--log-every 1 --metrics", dir_ / (name + ".jsonl"),
                    "--checkpoint-every 1 --checkpoint-dir", dir_ / name);
  };
  RunningProgram killed(gpu_program(run("killed", 1'000'000)));
  const auto victim = worker_of(killed.pid(), 1);
  ASSERT_TRUE(victim);
  ASSERT_TRUE(killed.wait_until_file_has(dir_ / "killed.jsonl", "\"step\":20,"));
  ASSERT_EQ(kill(*victim, SIGKILL), 0);
  ASSERT_EQ(killed.wait().exit_code, 1);
  const int steps = static_cast<int>(metrics_lines(dir_ / "killed.jsonl", "step").size()) + 10;
  const ProgramResult resumed =
      successful(run_on_gpus(run("killed", steps) + Arguments{"--resume"}));
  EXPECT_TRUE(contains(resumed.err, "resumed from"));
  const ProgramResult whole = successful(run_on_gpus(run("whole", steps)));
  EXPECT_EQ(summary_of(dir_ / "killed.jsonl").at("weights_hash"),
            summary_of(dir_ / "whole.jsonl").at("weights_hash"));
}

struct Loss {
  const char* name;
  int worker;
  int signal;
  const char* nccl;  // a fault to inject into the NCCL of another worker
};
std::ostream& operator<<(std::ostream& out, const Loss& loss) { return out << loss.name; }

class ATaskWithAGpuEachLostToNccl : public NcclBetweenTasksWithAGpuEach,
                                    public testing::WithParamInterface<Loss> {};

// After a worker is lost, each remaining worker waits for a device whose kernel waits for the lost
// worker.
TEST_P(ATaskWithAGpuEachLostToNccl, EndsAllOthersWithinFiveSeconds) {
  const Loss& loss = GetParam();
  const int workers = is_emulated() ? 3 : 2;
  if (loss.worker >= workers) GTEST_SKIP() << "a real NCCL cannot be told when to notice a loss";
  RunningProgram launch(gpu_program(endless(workers), {"EMULATED_GPUS=3", loss.nccl}));
  const auto victim = worker_of(launch.pid(), loss.worker);
  ASSERT_TRUE(victim);
  ASSERT_TRUE(launch.wait_until_file_has(dir_ / "m.jsonl", "\"step\":20,"));
  const EndTimer since_loss;
  ASSERT_EQ(kill(*victim, loss.signal), 0);
  for (int i = 0; i < workers; ++i) {
    if (i == loss.worker) continue;
    EXPECT_TRUE(
        launch.wait_until_err_has("launch: worker " + std::to_string(i) + " exited with 1"));
  }
  expect_ended_in_time(since_loss);
  const ProgramResult result = launch.wait();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  for (int i = 0; i < workers; ++i) {
    if (i != loss.worker) expect_one_line(result, i, {rank(loss.worker)});
  }
}

constexpr const char* kWaits = "EMULATED_NCCL=waits";
INSTANTIATE_TEST_SUITE_P(Each, ATaskWithAGpuEachLostToNccl,
                         testing::Values(Loss{"Killed0", 0, SIGKILL, kWaits},
                                         Loss{"Killed1", 1, SIGKILL, kWaits},
                                         Loss{"KilledAndEmulatedNcclNotices", 2, SIGKILL,
                                              "EMULATED_NCCL=reports-lost-ranks:0"},
                                         Loss{"Stopped0", 0, SIGSTOP, kWaits},
                                         Loss{"Stopped1", 1, SIGSTOP, kWaits}),
                         [](const auto& which) { return std::string(which.param.name); });

// The fixture's tests run on an emulated NCCL only, because a real NCCL cannot be made to fail.
class AnEmulatedNcclThatFails : public NcclBetweenTasksWithAGpuEach {
 protected:
  void SetUp() override {
    if (!is_emulated()) GTEST_SKIP() << "a real NCCL cannot be told to fail";
  }
  ProgramResult run_with(const std::string& fault) const {
    return run_on_gpus(job(2, "nccl") + few_steps(10),
                       {"EMULATED_NCCL=" + fault, "EMULATED_NCCL_TIMEOUT=1"});
  }
};

TEST_F(AnEmulatedNcclThatFails, AtTheRendezvousIsAttributedToItsRankByAll) {
  for (const int failed : {0, 1}) {
    const ProgramResult result = run_with("init-fails:" + std::to_string(failed));
    EXPECT_EQ(result.exit_code, 1) << result.err;
    const std::string why = "NCCL failed (unhandled system error) while replica " +
                            std::to_string(failed) + " (cuda:" + std::to_string(failed) + ")";
    expect_one_line(result, failed, {"syncopate: " + why, "--collective ring"});
    expect_one_line(result, 1 - failed, {rank(failed), why, "--collective ring"});
  }
}

// When the NCCL of one worker fails, the others receive the failure at once, through the shared
// memory in which the tasks sum on the host.
TEST_F(AnEmulatedNcclThatFails, InAStepIsAttributedToItsRankByAll) {
  for (const int failed : {0, 1}) {
    const ProgramResult result =
        run_on_gpus(endless(2), {"EMULATED_NCCL=breaks:" + std::to_string(failed)});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    const std::string why = "NCCL failed (internal error: the fake was told so) while replica " +
                            std::to_string(failed) + " (cuda:" + std::to_string(failed) + ")";
    expect_one_line(result, failed, {"syncopate: " + why, "--collective ring"});
    expect_one_line(result, 1 - failed, {"syncopate: " + rank(failed), why, "--collective ring"});
  }
}

TEST_F(AnEmulatedNcclThatFails, ToMakeAnIdIsAttributedToRankZero) {
  const ProgramResult result = run_with("id-fails:0");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const std::string why = "NCCL failed (unhandled system error) while replica 0";
  expect_one_line(result, 0, {"syncopate: " + why, "--collective ring"});
  expect_one_line(result, 1, {"syncopate: " + rank(0), why, "--collective ring"});
}

TEST_F(AnEmulatedNcclThatFails, ToConnectIsGivenUpByAll) {
  const ProgramResult result = run_with("never-connects:1");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  for (const int worker : {0, 1}) {
    expect_one_line(result, worker,
                    {"waited 1 s for all 2 replicas to meet over NCCL", "--collective ring"});
  }
}

TEST_F(AnEmulatedNcclThatFails, ForLackOfItsLibraryIsReportedByEachTask) {
  // Of several values of LD_LIBRARY_PATH the last takes effect. Its folder has a CUDA module that
  // needs an NCCL library which does not exist.
  const ProgramResult result =
      run_on_gpus(job(2, "nccl") + few_steps(10),
                  {std::string("LD_LIBRARY_PATH=") + SYNCOPATE_MODULE_WITHOUT_NCCL});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  for (const int worker : {0, 1}) {
    expect_one_line(result, worker,
                    {"the CUDA module cannot be loaded", "libnccl", "LD_LIBRARY_PATH"});
  }
}

}  // namespace
}  // namespace syncopate::test
