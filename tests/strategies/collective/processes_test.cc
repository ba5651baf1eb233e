// Tests the contract of a Collective between processes: each process runs rank_program.cc.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"

namespace syncopate {
namespace {

using test::ProgramResult;
using test::RunningProgram;

struct Job {
  std::string collective;
  int tasks = 1;
  int ranks_per_task = 1;
};

std::ostream& operator<<(std::ostream& out, const Job& job) {
  return out << job.collective << " " << job.tasks << "x" << job.ranks_per_task;
}

class RingBetweenProcesses : public testing::TestWithParam<Job> {};

TEST_P(RingBetweenProcesses, FulfilsTheCollectiveContract) {
  const Job job = GetParam();
  // Rank 0 inherits the listening socket, so that no other program can take the port in between.
  const Listener rendezvous(Endpoint{"127.0.0.1", 0});
  ASSERT_EQ(fcntl(rendezvous.descriptor(), F_SETFD, 0), 0);
  std::vector<std::unique_ptr<RunningProgram>> tasks;
  tasks.reserve(static_cast<std::size_t>(job.tasks));
  for (int index = 0; index < job.tasks; ++index) {
    tasks.push_back(std::make_unique<RunningProgram>(std::vector<std::string>{
        SYNCOPATE_RANK_PROGRAM, job.collective, std::to_string(index), std::to_string(job.tasks),
        std::to_string(job.ranks_per_task), "127.0.0.1:" + std::to_string(rendezvous.port()),
        std::to_string(rendezvous.descriptor())}));
  }
  for (int index = 0; index < job.tasks; ++index) {
    const ProgramResult result = tasks[static_cast<std::size_t>(index)]->wait();
    EXPECT_EQ(result.exit_code, 0) << "task " << index << ": " << result.err;
    EXPECT_FALSE(result.timed_out) << "task " << index;
  }
}

std::string name_of(const testing::TestParamInfo<Job>& of) {
  return of.param.collective + std::to_string(of.param.tasks) + "x" +
         std::to_string(of.param.ranks_per_task);
}

INSTANTIATE_TEST_SUITE_P(Jobs, RingBetweenProcesses,
                         testing::Values(Job{"tcp", 2, 1}, Job{"tcp", 4, 1}, Job{"tcp", 2, 2},
                                         Job{"ring", 2, 1}, Job{"ring", 3, 1}, Job{"ring", 2, 2}),
                         name_of);

class MpiBetweenProcesses : public testing::TestWithParam<int> {};

TEST_P(MpiBetweenProcesses, FulfilsTheCollectiveContract) {
  const std::string mpirun = SYNCOPATE_MPIRUN;
  if (mpirun.empty()) GTEST_SKIP() << "this build found no MPI, or there is no mpirun";
  RunningProgram job(as_words("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                              mpirun, "--oversubscribe --timeout 280 -n",
                              std::to_string(GetParam()), SYNCOPATE_RANK_PROGRAM, "mpi"));
  const ProgramResult result = successful(job.wait());
  EXPECT_FALSE(result.timed_out);
}

INSTANTIATE_TEST_SUITE_P(Ranks, MpiBetweenProcesses, testing::Values(1, 2, 3, 4),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace syncopate
