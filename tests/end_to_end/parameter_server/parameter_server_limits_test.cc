// Tests jobs with parameter servers at the limits of a machine: few open files, a full disk, host
// names that nobody can look up, and roles that stay stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

constexpr const char* kStep = "\"event\":\"step\"";

const Arguments kTrain = as_words(
    "train --strategy parameter-server --model mlp --data synthetic:1x28x28:10:2400 --threads 1 "
    "--no-progress --eval-every 0 --log-every 1");

// Returns a command of the shell that runs `limit`, such as "ulimit -n 64", before the program.
Arguments limited(const std::string& limit, const Arguments& flags) {
  return Arguments{"/bin/sh", "-c", limit + "; exec \"$@\"", "sh", SYNCOPATE_PROGRAM} + flags;
}

Arguments launch(int workers, int servers, const Arguments& flags = {}) {
  return as_words("launch --workers", std::to_string(workers), "--servers",
                  std::to_string(servers)) +
         flags + Arguments{"--"} + kTrain;
}

// The soft limit is too low for the launcher (3 files for each of 20 roles) and for server 0.
TEST(ASoftLimitOnOpenFiles, DoesNotLimitTheJob) {
  const TemporaryFolder scratch;
  RunningProgram job(
      limited("ulimit -Sn 48",
              launch(18, 2) + Arguments{"--steps", "200", "--metrics", scratch / "m.jsonl"}));
  successful(job.wait());
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("steps"), 200);
}

TEST(AHardLimitOnOpenFiles, EndsALaunchWithOneLine) {
  const ProgramResult result = run_program(limited("ulimit -n 64", launch(64, 4)));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  expect_one_line(result, {"64 workers and 4 servers", "the limit is 64", "ulimit -n 220"});
}

TEST(AHardLimitOnOpenFiles, EndsATaskWithOneLine) {
  const Port port(false);
  const Arguments meet{"--rendezvous", port.endpoint()};
  const ProgramResult server = run_program(
      limited("ulimit -n 64", as_words("serve --index 0 --servers 4 --workers 64") + meet));
  EXPECT_EQ(server.exit_code, 2) << server.err;
  expect_one_line(server, {"server 0 of 4 needs", "the limit is 64", "ulimit -n"});
  const ProgramResult worker = run_program(
      limited("ulimit -n 64", kTrain + as_words("--rank 1 --world-size 2 --servers 9") + meet));
  EXPECT_EQ(worker.exit_code, 2) << worker.err;
  expect_one_line(worker, {"rank 1 of 2 needs", "the limit is 64", "ulimit -n"});
}

TEST(AServerWithoutADescriptorForACaller, NamesTheLimit) {
  const Port port(false);
  RunningProgram server(
      limited("ulimit -n 54",
              as_words("serve --index 0 --servers 1 --workers 1 --rendezvous", port.endpoint())));
  ASSERT_TRUE(server.wait_until_err_has("listening at"));
  std::vector<FileDescriptor> callers;
  for (int i = 0; i < 60; ++i) callers.push_back(port.call());
  EXPECT_TRUE(
      server.wait_until_err_has("accept connections: Too many open files; the limit is 54"));
}

// The disk of the servers is full; the workers' folder for checkpoints is another one.
TEST(AFullDisk, OfTheServersDoesNotEndTheJob) {
  const TemporaryFolder scratch;
  const Port port(false);
  const Arguments meet{"--rendezvous", port.endpoint(), "--nonce", "full"};
  // `ulimit -f` keeps files from growing beyond 8 blocks of 512 bytes, as a full disk would.
  RunningProgram server(limited("trap '' XFSZ; ulimit -f 8",
                                as_words("serve --index 0 --servers 1 --workers 1 --checkpoint-dir",
                                         scratch / "snapshots", "--snapshot-every 0.2") +
                                    meet));
  RunningProgram worker(syncopate_command(
      kTrain +
      as_words(
          "--rank 0 --world-size 1 --servers 1 --steps 400 --service-time constant:5 --metrics",
          scratch / "m.jsonl") +
      meet));
  successful(worker.wait());
  const ProgramResult served = successful(server.wait());
  const std::size_t warning = served.err.find("was not written: ");
  ASSERT_NE(warning, std::string::npos) << served.err;
  EXPECT_NE(served.err.find("was not written: ", warning + 1), std::string::npos)
      << "it was not tried again: " << served.err;
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("steps"), 400);
}

TEST(AServerWhoseHostNameIsUnknown, IsNamed) {
  const Port port(false);
  const Arguments meet{"--rendezvous", port.endpoint()};
  RunningProgram server(syncopate_command(
      as_words("serve --index 0 --servers 1 --workers 1 --host no-such-host.invalid") + meet));
  const ProgramResult worker =
      run_syncopate(kTrain + as_words("--rank 0 --world-size 1 --servers 1 --steps 3") + meet);
  EXPECT_EQ(worker.exit_code, 2) << worker.err;
  expect_one_line(worker, {"server 0", "the host name 'no-such-host.invalid'", "--host"});
}

TEST(SeveralServersOnFewCpus, AreReported) {
  const ProgramResult result =
      successful(run_program(Arguments{"/usr/bin/taskset", "--cpu-list", "0"} +
                             syncopate_command(launch(1, 2) + Arguments{"--steps", "5"})));
  EXPECT_EQ(result.err.find("launch: 1 worker and 2 servers share 1 CPU: "), 0U) << result.err;
}

struct Stopped {
  const char* consistency;
  Role role;
};
std::ostream& operator<<(std::ostream& out, const Stopped& stopped) {
  return out << stopped.consistency << '_' << stopped.role.kind << stopped.role.index;
}

class ARoleThatStaysStopped : public testing::TestWithParam<Stopped> {};

TEST_P(ARoleThatStaysStopped, IsStartedAgainByLaunch) {
  const TemporaryFolder scratch;
  const auto metrics = scratch / "m.jsonl";
  // The others go on without an asynchronous worker, and must not end before it is given up.
  const int steps = GetParam().role.kind == std::string_view("worker") ? 2000 : 400;
  RunningProgram job(syncopate_command(
      launch(3, 2, {"--restart", "1"}) +
      as_words("--consistency", GetParam().consistency, "--steps", std::to_string(steps),
               "--service-time constant:10 --snapshot-every 0.5 --checkpoint-dir", scratch / "ck",
               "--metrics", metrics)));
  // On a busy machine the other workers may train most of the job before worker 0, which writes the
  // metrics, has trained many batches.
  ASSERT_TRUE(job.wait_until_file_has(metrics, kStep, 20));
  const auto victim = process_of(job.pid(), GetParam().role);
  ASSERT_TRUE(victim);
  ASSERT_EQ(kill(*victim, SIGSTOP), 0);
  const ProgramResult result = successful(job.wait());
  const std::string role =
      std::string(GetParam().role.kind) + " " + std::to_string(GetParam().role.index);
  EXPECT_TRUE(contains(result.err, "launch: SIGKILL to " + role + ": it has been stopped for 5 s"));
  std::size_t restarts = 0;
  for (std::size_t at = 0; (at = result.err.find("restarting it", at)) != std::string::npos; ++at) {
    ++restarts;
  }
  EXPECT_EQ(restarts, 1U) << "others used up their restarts: " << result.err;
  EXPECT_EQ(summary_of(metrics).at("steps"), steps);
}

INSTANTIATE_TEST_SUITE_P(Each, ARoleThatStaysStopped,
                         testing::Values(Stopped{"async", {"server", 0}},
                                         Stopped{"async", {"worker", 1}},
                                         Stopped{"ssp", {"server", 1}},
                                         Stopped{"sync", {"server", 0}}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace syncopate::test
