// Tests that a file that a run writes is refused to another run.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/scratch_dir.h"

namespace syncopate::test {
namespace {

using Arguments = std::vector<std::string>;

// Flags of a training run whose metrics are in the file m.jsonl.
Arguments claiming_flags(const ScratchDir& scratch, const Arguments& more) {
  return Arguments{"--model",     "mlp", "--data",    "synthetic:1x8x8:4:640", "--threads",    "1",
                   "--log-every", "1",   "--metrics", scratch / "m.jsonl",     "--no-progress"} +
         more;
}

Arguments claiming_run(const ScratchDir& scratch, const Arguments& more) {
  return syncopate_command(Arguments{"train"} + claiming_flags(scratch, more));
}

TEST(MetricsFile, OfARunningJobIsRefusedToASecondOne) {
  const ScratchDir scratch;
  RunningProgram first(claiming_run(scratch, {"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  const ProgramResult second = RunningProgram(claiming_run(scratch, {"--steps", "5"})).wait();
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_NE(second.err.find("m.jsonl: another run writes this file (process " +
                            std::to_string(first.pid()) + ")"),
            std::string::npos)
      << second.err;
  first.send(SIGTERM);
  first.wait();
  const auto steps = metrics_lines(scratch / "m.jsonl", "step");
  ASSERT_GE(steps.size(), 3U);
  EXPECT_EQ(steps.front().at("step"), 1) << "no line of the first run was removed";
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "begin").size(), 1U);
}

TEST(MetricsFile, OfAnAsynchronousJobIsSharedByItsWorkersAndRefusedToOthers) {
  const ScratchDir scratch;
  RunningProgram job(syncopate_command(
      Arguments{"launch", "--workers", "2", "--servers", "1", "--", "train", "--strategy",
                "parameter-server"} +
      claiming_flags(scratch, {"--epochs", "100000", "--eval-every-steps", "5"})));
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"eval\"", 20));
  const ProgramResult second = RunningProgram(claiming_run(scratch, {"--steps", "5"})).wait();
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_NE(second.err.find("m.jsonl: another run writes this file"), std::string::npos)
      << second.err;
  job.send(SIGTERM);
  EXPECT_EQ(job.wait().exit_code, 1) << "nothing was saved";
}

TEST(MetricsFile, IsAppendedToByARunThatResumes) {
  const ScratchDir scratch;
  const Arguments folder{"--checkpoint-dir", scratch / "ck", "--resume"};
  for (const char* steps : {"4", "7"}) {
    const auto result =
        RunningProgram(claiming_run(scratch, folder + Arguments{"--steps", steps})).wait();
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "step").size(), 7U);
}

TEST(TraceFile, OfARunningJobIsRefusedToASecondOne) {
  const ScratchDir scratch;
  const Arguments trace{"--trace", scratch / "t.json"};
  RunningProgram first(claiming_run(scratch, trace + Arguments{"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  const ProgramResult second =
      RunningProgram(claiming_run(scratch, trace + Arguments{"--steps", "5", "--metrics",
                                                             scratch / "second.jsonl"}))
          .wait();
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_NE(second.err.find("t.json: another run writes this file"), std::string::npos)
      << second.err;
}

}  // namespace
}  // namespace syncopate::test
