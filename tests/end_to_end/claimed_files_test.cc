// Tests that a file that a run writes is refused to another run.
#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
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

// Returns the files of a folder and of the folders in it.
std::size_t count_files(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    count += entry.is_regular_file() ? 1 : 0;
  }
  return count;
}

TEST(CurvesFolder, OfARunningJobIsRefusedToASecondOne) {
  const ScratchDir scratch;
  const Arguments curves{"--tensorboard", scratch / "tb"};
  RunningProgram first(claiming_run(scratch, curves + Arguments{"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  const std::size_t before = count_files(scratch / "tb" / "train");
  const ProgramResult second =
      RunningProgram(claiming_run(scratch, curves + Arguments{"--steps", "5", "--metrics",
                                                              scratch / "second.jsonl"}))
          .wait();
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_NE(second.err.find("--tensorboard " + (scratch / "tb").string() +
                            ": another run writes this folder (process " +
                            std::to_string(first.pid()) + ")"),
            std::string::npos)
      << second.err;
  EXPECT_EQ(count_files(scratch / "tb" / "train"), before);
}

TEST(CurvesFolder, OfAnAsynchronousJobIsSharedByItsWorkersAndRefusedToOthers) {
  const ScratchDir scratch;
  const Arguments curves{"--tensorboard", scratch / "tb"};
  RunningProgram job(
      syncopate_command(Arguments{"launch", "--workers", "2", "--servers", "1", "--", "train",
                                  "--strategy", "parameter-server"} +
                        claiming_flags(scratch, curves + Arguments{"--epochs", "100000",
                                                                   "--eval-every-steps", "5"})));
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"eval\"", 20));
  const ProgramResult second =
      RunningProgram(claiming_run(scratch, curves + Arguments{"--steps", "5", "--metrics",
                                                              scratch / "second.jsonl"}))
          .wait();
  EXPECT_EQ(second.exit_code, 2) << second.err;
  EXPECT_NE(second.err.find("tb: another run writes this folder"), std::string::npos) << second.err;
  job.send(SIGTERM);
  EXPECT_EQ(job.wait().exit_code, 1) << "nothing was saved";
}

TEST(CurvesFolder, MayBeTheCheckpointFolderOfARunThatResumes) {
  const ScratchDir scratch;
  const Arguments folders{"--checkpoint-dir", scratch / "ck", "--tensorboard", scratch / "ck",
                          "--resume"};
  for (const char* steps : {"4", "7"}) {
    const auto result =
        RunningProgram(claiming_run(scratch, folders + Arguments{"--steps", steps})).wait();
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
}

// The export would replace the file, and the run would go on in one without a name.
TEST(MetricsFile, OfARunningJobIsNotReplacedByAnExport) {
  const ScratchDir scratch;
  const auto done =
      RunningProgram(claiming_run(scratch, {"--steps", "2", "--checkpoint-dir", scratch / "ck"}))
          .wait();
  ASSERT_EQ(done.exit_code, 0) << done.err;
  RunningProgram first(claiming_run(scratch, {"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  for (const Arguments& format : {Arguments{}, Arguments{"--onnx"}}) {
    const ProgramResult second =
        RunningProgram(syncopate_command(Arguments{"export", "--checkpoint", scratch / "ck"} +
                                         format + Arguments{scratch / "m.jsonl"}))
            .wait();
    EXPECT_EQ(second.exit_code, 2) << second.err;
    EXPECT_NE(second.err.find("m.jsonl: another run writes this file (process " +
                              std::to_string(first.pid()) + ")"),
              std::string::npos)
        << second.err;
  }
  first.send(SIGTERM);
  first.wait();
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "begin").size(), 1U);
}

}  // namespace
}  // namespace syncopate::test
