// Tests mistakes in a cluster's setup that show only at the rendezvous: every task ends, with one
// line that explains how to correct the mistake.
#include <gtest/gtest.h>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "tests/end_to_end/support/difference.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/support/as_words.h"

namespace syncopate::test {
namespace {

Arguments task(int rank, int world, const std::string& rendezvous, const Arguments& more = {}) {
  return syncopate_command(
      as_words("train --strategy multi-worker-mirrored --model mlp --data synthetic:1x8x8:4:256 "
               "--steps 3 --threads 1 --no-progress --rank",
               std::to_string(rank), "--world-size", std::to_string(world), "--rendezvous",
               rendezvous, "--rendezvous-timeout 2") +
      more);
}

TEST(ThreeTasksOfAWorldOfFour, NameTheMissingOne) {
  const Port port(false);
  const auto results = run_all(
      {task(0, 4, port.endpoint()), task(1, 4, port.endpoint()), task(3, 4, port.endpoint())});
  for (const ProgramResult& result : results) expect_one_line(result, {"3 of 4", "rank 2"});
}

TEST(TwoTasksOfOneRank, AreRefused) {
  const Port port(false);
  const auto results = run_all(
      {task(0, 3, port.endpoint()), task(1, 3, port.endpoint()), task(1, 3, port.endpoint())});
  for (const ProgramResult& result : results) expect_one_line(result, {"rank 1"});
}

TEST(TasksOfTwoWorlds, AreRefused) {
  const Port port(false);
  const auto results = run_all({task(0, 2, port.endpoint()), task(1, 3, port.endpoint())});
  for (const ProgramResult& result : results) {
    expect_one_line(result, {"world of 3", "world of 2"});
  }
}

class TasksThatDiffer : public testing::TestWithParam<Difference> {};

TEST_P(TasksThatDiffer, AreRefusedWithTheDifference) {
  const auto& [flag, first, second] = GetParam();
  const Port port(false);
  Arguments one = task(0, 2, port.endpoint());
  Arguments other = task(1, 2, port.endpoint());
  for (auto* command : {&one, &other}) {
    const auto at = std::find(command->begin(), command->end(), flag);
    if (at != command->end()) command->erase(at, at + 2);
  }
  const auto results = run_all({one + Arguments{flag, first}, other + Arguments{flag, second}});
  for (const ProgramResult& result : results) {
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"rank 1 ", flag, first, second});
  }
}

INSTANTIATE_TEST_SUITE_P(In, TasksThatDiffer,
                         testing::Values(Difference{"--model", "mlp", "mnist-cnn"},
                                         Difference{"--seed", "1", "2"},
                                         Difference{"--learning-rate", "0.001", "0.002"},
                                         Difference{"--optimizer", "sgd", "adam"},
                                         Difference{"--transport", "tcp", "shm"},
                                         Difference{"--steps", "3", "4"}),
                         [](const auto& parameters) {
                           std::string name = parameters.param.flag.substr(2);
                           std::erase(name, '-');
                           return name;
                         });

TEST(TasksWithOtherData, AreRefused) {
  const Port port(false);
  Arguments other = task(1, 2, port.endpoint());
  *(std::find(other.begin(), other.end(), "--data") + 1) = "synthetic:1x8x8:4:512";
  const auto results = run_all({task(0, 2, port.endpoint()), other});
  for (const ProgramResult& result : results) {
    expect_one_line(result, {"--data: rank 1 ", "256", "512"});
  }
}

TEST(TasksWithSamplesOfDifferentShape, AreRefused) {
  const Port port(false);
  Arguments other = task(1, 2, port.endpoint());
  *(std::find(other.begin(), other.end(), "--data") + 1) = "synthetic:1x16x16:4:256";
  const auto results = run_all({task(0, 2, port.endpoint()), other});
  for (const ProgramResult& result : results) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    expect_one_line(result, {"--data: rank 1 ", "[16, 16, 1]", "[8, 8, 1]"});
  }
}

TEST(APortInUse, IsNamed) {
  const Port port(true);
  const auto result = run_all({task(0, 2, port.endpoint())}).front();
  expect_one_line(result, {port.endpoint(), "in use"});
  EXPECT_EQ(result.exit_code, 2);
}

TEST(AnUnknownHost, IsNamed) {
  for (const int rank : {0, 1}) {
    const auto result = run_all({task(rank, 2, "no-such-host.invalid:4000")}).front();
    expect_one_line(result, {"no-such-host.invalid"});
    EXPECT_EQ(result.exit_code, 2);
  }
}

TEST(ARankZeroThatNeverStarts, IsNamedWithItsAddress) {
  const Port port(false);
  const auto result = run_all({task(1, 2, port.endpoint())}).front();
  expect_one_line(result, {"rank 0", port.endpoint(), "2 s"});
}

class AWaitingTask : public testing::TestWithParam<int> {};

TEST_P(AWaitingTask, EndsAtOnceOnRequest) {
  const Port port(false);
  RunningProgram waiting(task(0, 2, port.endpoint(), {"--rendezvous-timeout", "600"}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!port.answers() && std::chrono::steady_clock::now() < end) sched_yield();
  waiting.send(GetParam());
  const ProgramResult result = waiting.wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result, {"before training began"});
}

INSTANTIATE_TEST_SUITE_P(Each, AWaitingTask, testing::Values(SIGHUP, SIGINT, SIGTERM, SIGUSR1));

TEST(Nccl, OnCpusEndsEveryTask) {
  const Port port(false);
  const auto results = run_all({task(0, 2, port.endpoint(), {"--collective", "nccl"}),
                                task(1, 2, port.endpoint(), {"--collective", "nccl"})});
  for (const ProgramResult& result : results) {
    expect_one_line(result, {"--collective nccl", "CPU", "--collective ring"});
    EXPECT_EQ(result.exit_code, 2);
  }
}

TEST(MpiWithoutMpirun, IsRefusedWithTheCommandToUse) {
  const Port port(false);
  // The timeout is 40 s, because MPI needs time to find that the task is alone, and more time where
  // host names cannot be resolved.
  const Arguments mpi{"--collective", "mpi", "--rendezvous-timeout", "40"};
  const auto results =
      run_all({task(0, 2, port.endpoint(), mpi), task(1, 2, port.endpoint(), mpi)});
  for (const ProgramResult& result : results) expect_one_line(result, {"mpi"});
}

}  // namespace
}  // namespace syncopate::test
