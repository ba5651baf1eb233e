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
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// Flags of a training run whose metrics are in the file m.jsonl.
Arguments claiming_flags(const TemporaryFolder& scratch, const Arguments& more) {
  return as_words("--model mlp --data synthetic:1x8x8:4:640 --threads 1 --log-every 1 --metrics",
                  scratch / "m.jsonl", "--no-progress") +
         more;
}

Arguments claiming_run(const TemporaryFolder& scratch, const Arguments& more) {
  return syncopate_command(Arguments{"train"} + claiming_flags(scratch, more));
}

TEST(MetricsFile, OfARunningJobIsRefusedToASecondOne) {
  const TemporaryFolder scratch;
  RunningProgram first(claiming_run(scratch, {"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  expect_failure(
      run_program(claiming_run(scratch, {"--steps", "5"})), 2,
      {"m.jsonl: another run writes this file (process " + std::to_string(first.pid()) + ")"});
  first.send(SIGTERM);
  first.wait();
  const auto steps = metrics_lines(scratch / "m.jsonl", "step");
  ASSERT_GE(steps.size(), 3U);
  EXPECT_EQ(steps.front().at("step"), 1) << "no line of the first run was removed";
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "begin").size(), 1U);
}

TEST(MetricsFile, OfAnAsynchronousJobIsSharedByItsWorkersAndRefusedToOthers) {
  const TemporaryFolder scratch;
  RunningProgram job(syncopate_command(
      as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server") +
      claiming_flags(scratch, {"--epochs", "100000", "--eval-every-steps", "5"})));
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"eval\"", 20));
  expect_failure(run_program(claiming_run(scratch, {"--steps", "5"})), 2,
                 {"m.jsonl: another run writes this file"});
  job.send(SIGTERM);
  EXPECT_EQ(job.wait().exit_code, 1) << "nothing was saved";
}

TEST(MetricsFile, IsAppendedToByARunThatResumes) {
  const TemporaryFolder scratch;
  const Arguments folder{"--checkpoint-dir", scratch / "ck", "--resume"};
  for (const char* steps : {"4", "7"}) {
    const auto result = run_program(claiming_run(scratch, folder + Arguments{"--steps", steps}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "step").size(), 7U);
}

TEST(TraceFile, OfARunningJobIsRefusedToASecondOne) {
  const TemporaryFolder scratch;
  const Arguments trace{"--trace", scratch / "t.json"};
  RunningProgram first(claiming_run(scratch, trace + Arguments{"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  expect_failure(run_program(claiming_run(
                     scratch, trace + as_words("--steps 5 --metrics", scratch / "second.jsonl"))),
                 2, {"t.json: another run writes this file"});
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
  const TemporaryFolder scratch;
  const Arguments curves{"--tensorboard", scratch / "tb"};
  RunningProgram first(claiming_run(scratch, curves + Arguments{"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  const std::size_t before = count_files(scratch / "tb" / "train");
  expect_failure(
      run_program(claiming_run(scratch,
                               curves + as_words("--steps 5 --metrics", scratch / "second.jsonl"))),
      2,
      {"--tensorboard " + (scratch / "tb").string() + ": another run writes this folder (process " +
       std::to_string(first.pid()) + ")"});
  EXPECT_EQ(count_files(scratch / "tb" / "train"), before);
}

TEST(CurvesFolder, OfAnAsynchronousJobIsSharedByItsWorkersAndRefusedToOthers) {
  const TemporaryFolder scratch;
  const Arguments curves{"--tensorboard", scratch / "tb"};
  RunningProgram job(syncopate_command(
      as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server") +
      claiming_flags(scratch, curves + as_words("--epochs 100000 --eval-every-steps 5"))));
  ASSERT_TRUE(job.wait_until_file_has(scratch / "m.jsonl", "\"event\":\"eval\"", 20));
  expect_failure(run_program(claiming_run(
                     scratch, curves + as_words("--steps 5 --metrics", scratch / "second.jsonl"))),
                 2, {"tb: another run writes this folder"});
  job.send(SIGTERM);
  EXPECT_EQ(job.wait().exit_code, 1) << "nothing was saved";
}

TEST(CurvesFolder, MayBeTheCheckpointFolderOfARunThatResumes) {
  const TemporaryFolder scratch;
  const Arguments folders =
      as_words("--checkpoint-dir", scratch / "ck", "--tensorboard", scratch / "ck", "--resume");
  for (const char* steps : {"4", "7"}) {
    const auto result = run_program(claiming_run(scratch, folders + Arguments{"--steps", steps}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
}

// The export would replace the file, and the run would go on in one without a name.
TEST(MetricsFile, OfARunningJobIsNotReplacedByAnExport) {
  const TemporaryFolder scratch;
  const auto done =
      run_program(claiming_run(scratch, {"--steps", "2", "--checkpoint-dir", scratch / "ck"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  RunningProgram first(claiming_run(scratch, {"--epochs", "100000"}));
  ASSERT_TRUE(first.wait_until_file_has(scratch / "m.jsonl", "\"step\":3,"));
  for (const Arguments& format : {Arguments{}, Arguments{"--onnx"}}) {
    expect_failure(
        run_program(syncopate_command(Arguments{"export", "--checkpoint", scratch / "ck"} + format +
                                      Arguments{scratch / "m.jsonl"})),
        2, {"m.jsonl: another run writes this file (process " + std::to_string(first.pid()) + ")"});
  }
  first.send(SIGTERM);
  first.wait();
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "begin").size(), 1U);
}

}  // namespace
}  // namespace syncopate::test
