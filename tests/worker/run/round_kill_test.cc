// Kills a task of a local-sgd job in each phase of a round, with processes that run round_task.cc.
// The other task ends. The resumed job and an undisturbed job compute the same bits.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "tests/end_to_end/support/end_timer.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

using test::EndTimer;
using test::ProgramResult;
using test::RunningProgram;

struct Death {
  std::string phase = "none";
  int victim = 0;
  std::string transport = "tcp";
};
std::ostream& operator<<(std::ostream& out, const Death& death) {
  return out << death.phase << death.victim << death.transport;
}

// Runs the two tasks. The victim dies in the third of seven rounds.
std::vector<ProgramResult> run_job(const TemporaryFolder& folder, const Death& death) {
  // Rank 0 inherits the listening socket, so that no other program can take the port in between.
  const Listener rendezvous(Endpoint{"127.0.0.1", 0});
  EXPECT_EQ(fcntl(rendezvous.descriptor(), F_SETFD, 0), 0);
  std::vector<std::unique_ptr<RunningProgram>> tasks;
  for (int index = 0; index < 2; ++index) {
    tasks.push_back(std::make_unique<RunningProgram>(std::vector<std::string>{
        SYNCOPATE_ROUND_TASK, std::to_string(index),
        "127.0.0.1:" + std::to_string(rendezvous.port()), std::to_string(rendezvous.descriptor()),
        folder.path(), death.transport, index == death.victim ? death.phase : "none", "3"}));
  }
  std::vector<ProgramResult> results;
  for (const auto& task : tasks) results.push_back(task->wait());
  return results;
}

class ATaskOfLocalSgd : public testing::TestWithParam<Death> {};

TEST_P(ATaskOfLocalSgd, KilledInAnyPhaseOfARoundIsResumedToTheBitsOfAnUndisturbedJob) {
  const Death death = GetParam();
  const TemporaryFolder alone;
  const ProgramResult expected = successful(run_job(alone, {.transport = death.transport})[0]);
  const TemporaryFolder folder;
  const EndTimer since_start;
  const std::vector<ProgramResult> killed = run_job(folder, death);
  const auto victim = static_cast<std::size_t>(death.victim);
  EXPECT_EQ(killed[victim].ended_by_signal, SIGKILL) << killed[victim].err;
  EXPECT_EQ(killed[1 - victim].exit_code, 1);
  EXPECT_TRUE(contains(killed[1 - victim].err, "rank " + std::to_string(death.victim)))
      << killed[1 - victim].err;
  expect_ended_in_time(since_start);
  const std::vector<ProgramResult> resumed = run_job(folder, {.transport = death.transport});
  EXPECT_EQ(successful(resumed[0]).out, expected.out);
  EXPECT_EQ(successful(resumed[1]).out, expected.out);
}

std::vector<Death> deaths() {
  std::vector<Death> all;
  for (const char* phase : {"step", "gather", "gathered", "sum", "outer", "checkpoint"}) {
    for (const int victim : {0, 1}) {
      for (const char* transport : {"tcp", "shm"}) all.push_back({phase, victim, transport});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(In, ATaskOfLocalSgd, testing::ValuesIn(deaths()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace syncopate
