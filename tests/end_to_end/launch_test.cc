// Tests `syncopate launch` and `syncopate cluster` with real training processes.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments launch(Arguments flags, const Arguments& train_flags) {
  flags.insert(flags.begin(), "launch");
  flags.insert(flags.end(),
               {"--", "train", "--strategy", "multi-worker-mirrored", "--model", "mlp", "--data",
                "synthetic:1x8x8:4", "--threads", "1", "--no-progress", "--log-every", "1"});
  flags.insert(flags.end(), train_flags.begin(), train_flags.end());
  return flags;
}

// Returns the child processes that the process `parent` has not yet reaped, oldest first.
std::vector<pid_t> children_of(pid_t parent) {
  const std::string number = std::to_string(parent);
  std::ifstream list("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

// Returns the worker processes of a launch.
std::vector<pid_t> workers(const RunningProgram& launch) { return children_of(launch.pid()); }

TEST(LaunchProgram, TrainsWithTwoWorkersOfWhichOneReports) {
  const TemporaryFolder scratch;
  const ProgramResult result = successful(run_syncopate(
      launch({"--workers", "2"}, {"--steps", "20", "--metrics", scratch / "m.jsonl"})));
  EXPECT_TRUE(contains(result.out, "[worker 0] test accuracy"));
  EXPECT_FALSE(contains(result.out, "[worker 1]"));
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("steps"), 20);
}

// Runs jobs in a network namespace whose only address is ::1.
TEST(LaunchProgram, MeetsAtTheIpv6LoopbackWhereThereIsNoIpv4) {
  const Arguments in_namespace{"/usr/bin/env",
                               "unshare",
                               "-rn",
                               "/bin/sh",
                               "-c",
                               "ip link set lo up && ip addr del 127.0.0.1/8 dev lo && "
                               "ip addr show lo | grep -q inet6 && exec \"$@\"",
                               "sh"};
  const ProgramResult possible = run_program(in_namespace + Arguments{"true"});
  if (possible.exit_code != 0) {
    GTEST_SKIP() << "a network with IPv6 alone cannot be made here: " << possible.err;
  }
  const Arguments workload =
      as_words("--model mlp --data synthetic:1x8x8:4 --threads 1 --steps 5 --no-progress");
  for (const Arguments& job :
       {as_words("--workers 2 -- train --strategy multi-worker-mirrored --transport tcp"),
        as_words("--workers 2 --servers 1 -- train --strategy parameter-server")}) {
    successful(run_program(in_namespace + syncopate_command(Arguments{"launch"} + job + workload)));
  }
}

TEST(LaunchProgram, SaysThatContinuingHasNoEffectOnWorkersThatWaitForEachOther) {
  const ProgramResult result = successful(
      run_syncopate(launch({"--workers", "1", "--on-failure", "continue"}, {"--steps", "1"})));
  EXPECT_TRUE(contains(result.err, "launch: --on-failure continue has no effect here"));
}

TEST(LaunchProgram, EndsWith2ForAUsageError) {
  for (const Arguments& arguments :
       {Arguments{"launch"}, Arguments{"launch", "--workers", "2", "--", "info"},
        as_words("launch --workers 2 --servers 1 -- train")}) {
    const ProgramResult result = run_syncopate(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err.rfind("syncopate: ", 0), 0U) << result.err;
  }
  const ProgramResult result = run_syncopate(launch({"--workers", "2"}, {"--epochs", "-1"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err.rfind("syncopate: --epochs -1", 0), 0U)
      << "once, and before a worker starts: " << result.err;
  const ProgramResult recording =
      run_syncopate(as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server "
                             "--threads 1 --record /no/such/folder/order"));
  EXPECT_EQ(recording.exit_code, 1);
  EXPECT_EQ(recording.err.rfind("syncopate: write --record /no/such/folder/order", 0), 0U)
      << "not by a server while workers wait for it: " << recording.err;
}

class LaunchStopSignals : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(LaunchStopSignals, SaveACheckpointAndExitWith75) {
  const auto& [collective, signal] = GetParam();
  if (std::string(collective) == "mpi" && !std::filesystem::exists("/usr/bin/mpirun")) {
    GTEST_SKIP() << "no mpirun on this machine";
  }
  const TemporaryFolder scratch;
  RunningProgram program(syncopate_command(launch(
      {"--workers", "2"}, as_words("--collective", collective, "--epochs 100000 --metrics",
                                   scratch / "m.jsonl", "--checkpoint-dir", scratch / "ck"))));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  program.send(signal);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

INSTANTIATE_TEST_SUITE_P(Each, LaunchStopSignals,
                         testing::Combine(testing::Values("ring", "mpi"),
                                          testing::Values(SIGHUP, SIGINT, SIGTERM, SIGUSR1)),
                         [](const auto& parameters) {
                           return std::string(std::get<0>(parameters.param)) +
                                  sigabbrev_np(std::get<1>(parameters.param));
                         });

TEST(LaunchProgram, RestartsFromTheCheckpointWhenAWorkerFails) {
  const TemporaryFolder scratch;
  RunningProgram program(syncopate_command(
      launch({"--workers", "2", "--restart", "1"},
             as_words("--steps 1500 --metrics", scratch / "m.jsonl", "--checkpoint-dir",
                      scratch / "ck", "--checkpoint-every 10"))));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":30,"));
  kill(workers(program).at(1), SIGKILL);
  const ProgramResult result = successful(program.wait());
  EXPECT_TRUE(contains(result.err, "launch: worker 1 was ended by signal 9 (SIGKILL)",
                       "launch: restart 1 of 1"));
  const auto kept = names_in(scratch / "ck");
  ASSERT_FALSE(kept.empty());
  EXPECT_TRUE(contains(kept.back(), "1500"));
}

// Tests the end of workers whose launch is killed. A stopped worker (true) must end, too.
class AKilledLaunch : public testing::TestWithParam<bool> {};

TEST_P(AKilledLaunch, EndsItsWorkers) {
  const TemporaryFolder scratch;
  // The test becomes the parent of processes that launch leaves behind, so that it can see how they
  // end.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  RunningProgram program(syncopate_command(
      launch({"--workers", "2"}, as_words("--epochs 100000 --metrics", scratch / "m.jsonl",
                                          "--checkpoint-dir", scratch / "ck"))));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  const std::vector<pid_t> left = workers(program);
  if (GetParam()) kill(left.at(1), SIGSTOP);
  program.send(SIGKILL);
  program.wait();
  EXPECT_EQ(left.size(), 2U);
  for (const pid_t worker : left) {
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, worker, 0));
    pollfd ended{descriptor, POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 30'000), 1) << "a worker goes on alone";
    close(descriptor);
    kill(worker, SIGKILL);  // without effect if the worker ended by itself, as it should
    int status = 0;
    EXPECT_EQ(waitpid(worker, &status, 0), worker);
    EXPECT_TRUE(WIFEXITED(status)) << "asked, not killed";
  }
  EXPECT_FALSE(names_in(scratch / "ck").empty());
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

INSTANTIATE_TEST_SUITE_P(Each, AKilledLaunch, testing::Bool(), [](const auto& parameters) {
  return std::string(parameters.param ? "StoppedToo" : "AllRunning");
});

TEST(ClusterProgram, PrintsTheClusterOfTheEnvironmentAsJson) {
  const ProgramResult result = successful(
      run_program({"/usr/bin/env", "RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "MASTER_ADDR=node7",
                   "MASTER_PORT=29500", SYNCOPATE_PROGRAM, "cluster"}));
  const auto cluster = nlohmann::json::parse(result.out);
  EXPECT_EQ(cluster.at("source"), "torchrun");
  EXPECT_EQ(cluster.at("rank"), 1);
  EXPECT_EQ(cluster.at("rendezvous"), "node7:29501");
}

}  // namespace
}  // namespace syncopate::test
