// Tests mistakes in how a job with parameter servers is started: one line says how to correct the
// mistake, the exit code is right, and no task waits without end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/end_to_end/support/difference.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

const Arguments kTrain = as_words("--model mlp --data synthetic:1x8x8:4:256 --steps 3 --seed 1");

// A Task has the environment variables by which launch gives a task its place in the job.
struct Task {
  std::string role = "worker";
  int index = 0;
  int workers = 2;
  int servers = 1;
  std::string nonce = "a secret";
};

Arguments command(const Port& port, const Task& task, const Arguments& flags = kTrain) {
  return as_words("/usr/bin/env", "SYNCOPATE_ROLE=" + task.role,
                  "SYNCOPATE_INDEX=" + std::to_string(task.index),
                  "SYNCOPATE_WORKERS=" + std::to_string(task.workers),
                  "SYNCOPATE_SERVERS=" + std::to_string(task.servers),
                  "SYNCOPATE_NONCE=" + task.nonce, "SYNCOPATE_RENDEZVOUS=" + port.endpoint(),
                  SYNCOPATE_PROGRAM,
                  "train --strategy parameter-server --threads 1 --no-progress "
                  "--rendezvous-timeout 2 --peer-timeout 2") +
         flags;
}

bool contains_text(const std::vector<ProgramResult>& results, const std::string& text) {
  return std::any_of(results.begin(), results.end(), [&](const ProgramResult& result) {
    return result.err.find(text) != std::string::npos;
  });
}

// Expects that all tasks failed and ended by themselves, so that none was left waiting.
void expect_failures(const std::vector<ProgramResult>& results) {
  for (const ProgramResult& result : results) {
    EXPECT_FALSE(result.timed_out);
    EXPECT_GT(result.exit_code, 0) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

class WorkersThatDiffer : public testing::TestWithParam<Difference> {};

TEST_P(WorkersThatDiffer, AreRefusedWithTheDifference) {
  const auto& [flag, first, second] = GetParam();
  const Port port(false);
  Arguments other = kTrain;
  const auto at = std::find(other.begin(), other.end(), flag);
  if (at == other.end()) {
    other = other + Arguments{flag, second};
  } else {
    *(at + 1) = flag == "--data" ? "synthetic:1x8x8:4:512" : second;
  }
  const auto results = run_all({command(port, {.role = "server"}), command(port, {.index = 0}),
                                command(port, {.index = 1}, other)});
  expect_failures(results);
  for (const ProgramResult& result : results) {
    EXPECT_FALSE(contains(result.err, "register within")) << "it came: " << result.err;
  }
  const auto refused = std::find_if(results.begin(), results.end(),
                                    [](const auto& result) { return result.exit_code == 2; });
  ASSERT_NE(refused, results.end());
  expect_one_line(*refused, {flag, first, second});
}

INSTANTIATE_TEST_SUITE_P(In, WorkersThatDiffer,
                         testing::Values(Difference{"--model", "mlp", "mnist-cnn"},
                                         Difference{"--seed", "1", "2"},
                                         Difference{"--data", "256 samples", "512 samples"},
                                         Difference{"--optimizer", "adam", "momentum"},
                                         Difference{"--consistency", "async", "sync"},
                                         Difference{"--staleness-rule", "none", "inverse"},
                                         Difference{"--compress", "none", "bf16"},
                                         Difference{"--batch-size-per-replica", "64", "32"},
                                         Difference{"--steps", "3", "4"}),
                         [](const auto& parameters) {
                           std::string name = parameters.param.flag;
                           std::erase(name, '-');
                           return name;
                         });

TEST(AWorkerOfAnotherJob, IsRefusedWithoutTheNonceOfTheJob) {
  const Port port(false);
  const auto results = run_all({command(port, {.role = "server", .workers = 1}),
                                command(port, {.index = 0, .workers = 1, .nonce = "other"})});
  for (const ProgramResult& result : results) EXPECT_GT(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(results.front().err, "a Hello of another job"));
  expect_one_line(results.back(), {"worker 0 belongs to another job than server 0"});
  EXPECT_FALSE(contains(results.back().err, "a secret"));
}

// A job that is started by hand, by the flags of one server and one worker. A nonce of "" is none.
std::vector<ProgramResult> started_by_hand(const std::string& nonce_of_server,
                                           const std::string& nonce_of_worker) {
  const Port port(false);
  const auto with = [&](const std::string& nonce, const Arguments& command) {
    return Arguments{"/usr/bin/env", "SYNCOPATE_NONCE=" + nonce} +
           syncopate_command(command + Arguments{"--rendezvous", port.endpoint()});
  };
  return run_all(
      {with(nonce_of_server, {"serve", "--workers", "1", "--rendezvous-timeout", "10"}),
       with(nonce_of_worker, as_words("train --strategy parameter-server --rank 0 --world-size 1 "
                                      "--servers 1 --threads 1 --no-progress") +
                                 kTrain)});
}

bool has_warning_of_nonce(const ProgramResult& result) {
  return result.err.find("export SYNCOPATE_NONCE=") != std::string::npos;
}

TEST(AJobStartedByFlags, TrainsWithTheNonceOfTheEnvironment) {
  for (const ProgramResult& result : started_by_hand("a secret", "a secret")) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_FALSE(has_warning_of_nonce(result)) << result.err;
  }
}

TEST(AJobStartedByFlags, WarnsOnceWithoutANonce) {
  const auto results = started_by_hand("", "");
  for (const ProgramResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has_warning_of_nonce(results.front())) << results.front().err;
  EXPECT_FALSE(has_warning_of_nonce(results.back())) << results.back().err;
  // The advice works where only the base system is installed.
  const std::string& text = results.front().err;
  const std::size_t begin = std::min(text.find("NONCE=$("), text.size() - 8) + 8;
  const std::string advice = text.substr(begin, text.find(')', begin) - begin);
  EXPECT_TRUE(advice.starts_with("cat /")) << advice;
  const auto made = run_all({Arguments{"/bin/sh", "-c", advice}});
  EXPECT_EQ(made.front().exit_code, 0) << made.front().err;
  EXPECT_GE(made.front().out.size(), 32U);
}

TEST(AJobStartedByFlags, RefusesAWorkerOfAnotherNonceOrOfNone) {
  for (const char* const nonce : {"another secret", ""}) {
    const auto results = started_by_hand("a secret", nonce);
    EXPECT_TRUE(
        contains(results.front().err, "a Hello of another job: the two have different nonces"));
    EXPECT_EQ(results.back().exit_code, 1);
    expect_one_line(results.back(),
                    {"another job than server 0", "different nonces, or one has none",
                     "give all tasks the same SYNCOPATE_NONCE"});
  }
  const auto results = started_by_hand("", "a secret");
  EXPECT_EQ(results.back().exit_code, 1);
  expect_one_line(results.back(),
                  {"different nonces, or one has none", "give all tasks the same SYNCOPATE_NONCE"});
}

TEST(AWorkerOfAWorldOfAnotherSize, IsRefusedWithBothSizes) {
  const Port port(false);
  const auto results =
      run_all({command(port, {.role = "server", .workers = 2}), command(port, {.workers = 3})});
  expect_failures(results);
  expect_one_line(results.back(), {"3", "2", "workers"});
}

TEST(TwoWorkersOfOneIndex, AreRefused) {
  const Port port(false);
  const auto results = run_all({command(port, {.role = "server"}), command(port, {.index = 1}),
                                command(port, {.index = 1})});
  expect_failures(results);
  EXPECT_TRUE(contains_text({results.begin() + 1, results.end()}, "worker 1"));
}

TEST(WorkersThatNeverStart, AreNamed) {
  const Port port(false);
  const auto results = run_all({command(port, {.role = "server", .workers = 3}),
                                command(port, {.index = 0, .workers = 3}),
                                command(port, {.index = 2, .workers = 3})});
  expect_failures(results);
  for (const ProgramResult& result : results)
    expect_one_line(result, {"worker 1 did not register within 2 s at " + port.endpoint()});
}

TEST(AServerThatNeverStarts, IsNamed) {
  const Port port(false);
  const auto results = run_all({command(port, {.role = "server", .workers = 1, .servers = 2}),
                                command(port, {.workers = 1, .servers = 2})});
  expect_failures(results);
  for (const ProgramResult& result : results)
    expect_one_line(result, {"server 1 did not register within 2 s at " + port.endpoint()});
}

TEST(AServerZeroThatNeverStarts, IsNamedWithItsAddress) {
  const Port port(false);
  const auto results = run_all({command(port, {.workers = 1})});
  expect_failures(results);
  expect_one_line(results.front(), {"server 0", port.endpoint(), "2 s"});
}

TEST(AServersPortInUse, IsNamed) {
  const Port port(true);
  const auto results = run_all({command(port, {.role = "server", .workers = 1})});
  const std::string number = port.endpoint().substr(port.endpoint().find(':'));
  expect_one_line(results.front(), {number, "in use"});
  EXPECT_EQ(results.front().exit_code, 2);
  const ProgramResult serve =
      run_syncopate({"serve", "--workers", "1", "--rendezvous", port.endpoint()});
  expect_one_line(serve, {"in use"});
  EXPECT_EQ(serve.exit_code, 2);
}

TEST(AServer, ReportsAtOnceWhatItCannotWrite) {
  for (const auto& [flag, path] :
       {std::pair{"--checkpoint-dir", "/proc/nope"}, std::pair{"--record", "/proc/nope/order"}}) {
    const Port port(false);
    const ProgramResult result =
        run_syncopate(as_words("serve --workers 1 --rendezvous", port.endpoint(), flag, path));
    EXPECT_EQ(result.exit_code, 1);
    expect_one_line(result, {flag, path});
  }
}

TEST(ALaunch, ReportsOnceThatCheckpointsCannotBeWritten) {
  const ProgramResult result =
      run_syncopate(as_words("launch --workers 2 --servers 1 -- train") + kTrain +
                    Arguments{"--strategy", "parameter-server", "--checkpoint-dir", "/proc/nope"});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result, {"--checkpoint-dir /proc/nope"});
}

}  // namespace
}  // namespace syncopate::test
