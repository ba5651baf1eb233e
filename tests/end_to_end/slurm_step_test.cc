// Tests whole jobs with the variables that srun sets, without Slurm: this machine acts as the node.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

// A Step runs several tasks on localhost, with the variables of a Slurm step and a rendezvous at a
// free port.
class Step {
 public:
  explicit Step(int tasks, bool port_is_taken = false) : tasks_(tasks), port_(port_is_taken) {}

  void start(const Arguments& command, const Arguments& variables = {}) {
    const std::string rank = std::to_string(running_.size());
    const std::string endpoint = port_.endpoint();
    // The port is the number of the job too: tasks of one job share a file named after it.
    const std::string port = endpoint.substr(endpoint.rfind(':') + 1);
    running_.push_back(std::make_unique<RunningProgram>(
        as_words("/usr/bin/env", "SLURM_JOB_ID=" + port, "SLURM_STEP_ID=0", "SLURM_PROCID=" + rank,
                 "SLURM_LOCALID=" + rank, "SLURMD_NODENAME=localhost",
                 "SLURM_STEP_NUM_TASKS=" + std::to_string(tasks_), "SLURM_STEP_NODELIST=localhost",
                 "SLURM_STEP_TASKS_PER_NODE=" + std::to_string(tasks_),
                 "SLURM_STEP_RESV_PORTS=" + port) +
        variables + Arguments{SYNCOPATE_PROGRAM} + command));
  }
  std::vector<ProgramResult> wait() {
    std::vector<ProgramResult> results;
    for (const auto& program : running_) results.push_back(program->wait());
    return results;
  }

 private:
  int tasks_;
  Port port_;
  std::vector<std::unique_ptr<RunningProgram>> running_;
};

const Arguments kTrain = as_words(
    "train --model mlp --data synthetic:1x8x8:4:1600 --steps 20 --threads 1 --no-progress "
    "--rendezvous-timeout 20");

TEST(ASlurmStep, TrainsWithoutFlagsForItsTasks) {
  Step step(2);
  for (int task = 0; task < 2; ++task) {
    step.start(kTrain + Arguments{"--strategy", "multi-worker-mirrored"});
  }
  const std::vector<ProgramResult> results = step.wait();
  for (const ProgramResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(results[0].out, "test accuracy"));
  EXPECT_EQ(results[1].out, "") << "only the chief reports";
}

TEST(ASlurmStep, HasServersAmongItsFirstTasks) {
  Step step(3);
  for (int task = 0; task < 3; ++task) {
    step.start(kTrain + Arguments{"--strategy", "parameter-server", "--servers", "1"});
  }
  const std::vector<ProgramResult> results = step.wait();
  for (const ProgramResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(results[0].err, "served 20 pushes"));
}

TEST(ASlurmStep, EndsWithALineWhenARankIsNotWhereItWasPlaced) {
  Step step(2);
  step.start(kTrain + Arguments{"--strategy", "multi-worker-mirrored"});
  step.start(kTrain + Arguments{"--strategy", "multi-worker-mirrored"}, {"SLURM_LOCALID=5"});
  for (const ProgramResult& result : step.wait()) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(
        contains(result.err, "rank 1 runs on node localhost, local rank 5, but by Slurm's"));
  }
}

TEST(ASlurmStep, NamesItsPortIfAnotherProcessUsesIt) {
  Step step(2, true);
  step.start(kTrain + Arguments{"--strategy", "multi-worker-mirrored"});
  expect_failure(
      step.wait().front(), 2,
      {"follows from Slurm's variables and cannot be opened", "--rendezvous localhost:PORT"});
}

}  // namespace
}  // namespace syncopate::test
