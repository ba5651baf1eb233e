// A request to stop ends in a checkpoint that goes on, and in the exit code that says so.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/metrics_lines.h"
#include "tests/end_to_end/run_program.h"
#include "tests/end_to_end/scratch_dir.h"

namespace syncopate::test {
namespace {

using Arguments = std::vector<std::string>;

Arguments long_run(const ScratchDir& scratch, Arguments more = {}) {
  Arguments arguments{
      "train",       "--model", "mlp",           "--data",           "synthetic:1x8x8:4",
      "--epochs",    "100000",  "--no-progress", "--threads",        "1",
      "--log-every", "1",       "--metrics",     scratch / "m.jsonl"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

class StopSignals : public testing::TestWithParam<int> {};

TEST_P(StopSignals, SaveACheckpointThatGoesOnAndExitWith75) {
  const ScratchDir scratch;
  RunningProgram program(
      syncopate_command(long_run(scratch, {"--checkpoint-dir", scratch / "ck"})));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  program.send(GetParam());
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_NE(stopped.err.find("--resume"), std::string::npos) << stopped.err;
  ASSERT_FALSE(names_in(scratch / "ck").empty());

  const auto last_step = metrics_lines(scratch / "m.jsonl", "step").back().at("step").get<int>();
  const ProgramResult rest = run_syncopate(
      {"train", "--model", "mlp", "--data", "synthetic:1x8x8:4", "--steps",
       std::to_string(last_step + 5), "--no-progress", "--threads", "1", "--checkpoint-dir",
       scratch / "ck", "--resume", "--metrics", scratch / "rest.jsonl"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_NE(rest.err.find("at step " + std::to_string(last_step)), std::string::npos)
      << "nothing of what was trained is lost: " << rest.err;
  EXPECT_EQ(summary_of(scratch / "rest.jsonl").at("steps"), last_step + 5);
}

INSTANTIATE_TEST_SUITE_P(Each, StopSignals, testing::Values(SIGINT, SIGTERM, SIGUSR1));

TEST(StopSignal, SentMoreThanOnceStillEndsWith75) {
  const ScratchDir scratch;
  RunningProgram program(
      syncopate_command(long_run(scratch, {"--checkpoint-dir", scratch / "ck"})));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  // As a batch system does: a warning, then the end of the time, and a user who presses Ctrl-C.
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) program.send(signal);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << "ended by signal " << stopped.ended_by_signal;
  EXPECT_FALSE(names_in(scratch / "ck").empty());
}

TEST(StopSignal, WithoutACheckpointFolderSaysThatNothingWasSaved) {
  const ScratchDir scratch;
  RunningProgram program(syncopate_command(long_run(scratch)));
  ASSERT_TRUE(program.wait_until_file_has(scratch / "m.jsonl", "\"step\":20,"));
  program.send(SIGTERM);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_NE(stopped.err.find("nothing was saved"), std::string::npos) << stopped.err;
}

}  // namespace
}  // namespace syncopate::test
