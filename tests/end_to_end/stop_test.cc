// Tests that a request to stop ends in a checkpoint from which a run can resume, and in the exit
// code for a stop.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments run(const TemporaryFolder& scratch, const Arguments& more) {
  return as_words("train --model mlp --no-progress --threads 1 --log-every 1 --metrics",
                  scratch / "m.jsonl", more);
}

Arguments long_run(const TemporaryFolder& scratch, Arguments more = {}) {
  more.insert(more.end(), {"--data", "synthetic:1x8x8:4", "--epochs", "100000"});
  return run(scratch, more);
}

class StopSignals : public testing::TestWithParam<int> {};

TEST_P(StopSignals, SaveAResumableCheckpointAndExitWith75) {
  const TemporaryFolder scratch;
  RunningProgram program(
      syncopate_command(long_run(scratch, {"--checkpoint-dir", scratch / "ck"})));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  program.send(GetParam());
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(
      contains(stopped.err, "--resume", std::string("stopped by SIG") + sigabbrev_np(GetParam())));
  ASSERT_FALSE(names_in(scratch / "ck").empty());

  const auto last_step = metrics_lines(scratch / "m.jsonl", "step").back().at("step").get<int>();
  const ProgramResult rest = successful(run_syncopate(
      as_words("train --model mlp --data synthetic:1x8x8:4 --steps", std::to_string(last_step + 5),
               "--no-progress --threads 1 --checkpoint-dir", scratch / "ck", "--resume --metrics",
               scratch / "rest.jsonl")));
  EXPECT_TRUE(contains(rest.err, "at step " + std::to_string(last_step)))
      << "nothing of what was trained is lost: " << rest.err;
  EXPECT_EQ(summary_of(scratch / "rest.jsonl").at("steps"), last_step + 5);
}

INSTANTIATE_TEST_SUITE_P(Each, StopSignals,
                         testing::Values(SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU));

TEST(StopSignal, ThatIsIgnoredAtTheStartDoesNotStop) {
  const TemporaryFolder scratch;
  Arguments command{"/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "nohup"};
  command = command + syncopate_command(long_run(scratch, {"--checkpoint-dir", scratch / "ck"}));
  RunningProgram program(command);
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  program.send(SIGHUP);
  // A step that began after the signal.
  const auto step = metrics_lines(scratch / "m.jsonl", "step").back().at("step").get<int>() + 2;
  ASSERT_TRUE(
      program.wait_until_file_has(scratch / "m.jsonl", "\"step\":" + std::to_string(step) + ","));
  program.send(SIGTERM);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, "stopped by SIGTERM"));
}

TEST(StopSignal, SentMoreThanOnceStillEndsWith75) {
  const TemporaryFolder scratch;
  RunningProgram program(
      syncopate_command(long_run(scratch, {"--checkpoint-dir", scratch / "ck"})));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  // The test sends all signals that ask for a stop: a batch system sends a warning and then the
  // final signal, and a user presses Ctrl-C.
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) program.send(signal);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << "ended by signal " << stopped.ended_by_signal;
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

TEST(StopSignal, WithoutACheckpointFolderReportsThatNothingWasSaved) {
  const TemporaryFolder scratch;
  RunningProgram program(syncopate_command(long_run(scratch)));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  program.send(SIGTERM);
  expect_failure(program.wait(), 1, {"nothing was saved"});
}

// Stops a task that waits for another task, which never starts, and returns the result.
ProgramResult stopped_before_training(const TemporaryFolder& scratch, const Arguments& more) {
  const Port port(false);
  RunningProgram program(syncopate_command(
      run(scratch, as_words("--data synthetic:1x8x8:4:640 --strategy multi-worker-mirrored "
                            "--world-size 2 --rank 0 --rendezvous",
                            port.endpoint(), "--steps 50 --checkpoint-dir", scratch / "ck") +
                       more)));
  while (!port.answers() && !program.ends_within(std::chrono::milliseconds(10))) continue;
  program.send(SIGTERM);
  return program.wait();
}

TEST(StopSignal, BeforeTrainingBeganExitsWith75WhereResumeHasACheckpoint) {
  const TemporaryFolder scratch;
  const Arguments small =
      as_words("--data synthetic:1x8x8:4:640 --steps 5 --checkpoint-dir", scratch / "ck");
  successful(run_syncopate(run(scratch, small)));
  const auto before = names_in(scratch / "ck");
  const ProgramResult stopped = stopped_before_training(scratch, {"--resume"});
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, before.front()));
  EXPECT_EQ(names_in(scratch / "ck"), before);
}

TEST(StopSignal, BeforeTrainingBeganIsAFailureWithoutResume) {
  const TemporaryFolder scratch;
  expect_failure(stopped_before_training(scratch, {}), 1, {"nothing was saved"});
}

// A job script requeues a job that exits with 75. Nothing is lost if there is no checkpoint yet.
TEST(StopSignal, BeforeTrainingBeganExitsWith75WhereResumeHasNoCheckpoint) {
  const TemporaryFolder scratch;
  const ProgramResult stopped = stopped_before_training(scratch, {"--resume"});
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, "nothing was saved; the same command starts again"));
}

struct EvaluationCase {
  const char* name;
  const char* data;
  Arguments flags;
  int last_step;
};
std::ostream& operator<<(std::ostream& out, const EvaluationCase& evaluation) {
  return out << evaluation.name;
}

class AnEvaluation : public testing::TestWithParam<EvaluationCase> {};

// A request to stop arrives during the evaluation, which begins after the line of the last step and
// takes a second or longer.
TEST_P(AnEvaluation, IsCutShortOnAllWorkersByARequestToOne) {
  const auto& [name, data, flags, last_step] = GetParam();
  const TemporaryFolder scratch;
  Arguments arguments{"launch", "--workers", "3", "--"};
  const Arguments train = run(scratch, as_words("--strategy multi-worker-mirrored --data", data,
                                                "--checkpoint-dir", scratch / "ck"));
  arguments.insert(arguments.end(), train.begin(), train.end());
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  RunningProgram launch(syncopate_command(arguments));
  const auto asked = worker_of(launch.pid(), 1);
  ASSERT_TRUE(asked);
  const std::string step = std::to_string(last_step);
  ASSERT_TRUE(launch.wait_until_file_has(scratch / "m.jsonl", "\"step\":" + step + ","));
  ASSERT_EQ(kill(*asked, SIGUSR1), 0);
  const ProgramResult result = launch.wait();
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_TRUE(contains(result.err, "after step " + step + "; saved"));
  EXPECT_EQ(names_in(scratch / "ck").size(), 1U);
  EXPECT_TRUE(metrics_lines(scratch / "m.jsonl", "eval").empty()) << "it came to its end";
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl").back().at("step"), last_step);
}

INSTANTIATE_TEST_SUITE_P(
    Each, AnEvaluation,
    testing::Values(EvaluationCase{"AfterAnEpoch", "synthetic:1x28x28:10:1600000",
                                   as_words("--batch-size 16000 --epochs 9 --eval-every 1"), 100},
                    EvaluationCase{"AtTheEnd", "synthetic:1x28x28:10:1600000",
                                   as_words("--batch-size 24 --steps 2 --eval-every 9"), 2}),
    [](const auto& parameters) { return std::string(parameters.param.name); });

}  // namespace
}  // namespace syncopate::test
