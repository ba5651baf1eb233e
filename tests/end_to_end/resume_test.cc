// Tests that an interrupted and resumed run ends with the bits of the uninterrupted run.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/scratch_dir.h"

namespace syncopate::test {
namespace {

using Arguments = std::vector<std::string>;

Arguments joined(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// The run has almost four epochs of 781 steps, with a cosine schedule and Adam. A resume must
// restore position, step, slots and clock.
const Arguments kRun{"train",     "--model",     "mlp",     "--data",       "synthetic:1x8x8:4",
                     "--threads", "1",           "--steps", "3000",         "--lr-schedule",
                     "cosine",    "--log-every", "1",       "--no-progress"};

TEST(Resume, AfterKillsAtSeveralStepsEqualsTheUninterruptedRun) {
  const ScratchDir scratch;
  ASSERT_EQ(run_syncopate(joined(kRun, {"--metrics", scratch / "whole.jsonl"})).exit_code, 0);
  const auto expected = summary_of(scratch / "whole.jsonl");

  const Arguments interrupted =
      joined(kRun, {"--checkpoint-dir", scratch / "ck", "--checkpoint-every", "7", "--resume"});
  // The test kills the run before the first checkpoint, and then at later steps, also beyond the
  // end of an epoch. How many further steps each process completes depends on timing; the result
  // must not.
  for (const int steps : {2, 9, 31, 800}) {
    const auto metrics = scratch / ("killed-" + std::to_string(steps) + ".jsonl");
    RunningProgram program(syncopate_command(joined(interrupted, {"--metrics", metrics})));
    ASSERT_TRUE(program.wait_until_file_has(metrics, "\"event\":\"step\"", steps)) << steps;
    program.send(SIGKILL);
    ASSERT_EQ(program.wait().ended_by_signal, SIGKILL)
        << "it ended before the kill: nothing was tested";
  }
  const ProgramResult last =
      run_syncopate(joined(interrupted, {"--metrics", scratch / "last.jsonl"}));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_NE(last.err.find("resumed from"), std::string::npos) << last.err;
  const auto summary = summary_of(scratch / "last.jsonl");
  EXPECT_EQ(summary.at("weights_hash"), expected.at("weights_hash"));
  EXPECT_EQ(summary.at("test_loss"), expected.at("test_loss"));
  EXPECT_EQ(summary.at("steps"), 3000);
  EXPECT_EQ(summary.at("samples"), expected.at("samples"));
  EXPECT_EQ(names_in(scratch / "ck").size(), 3U)
      << "the newest three are kept, and nothing temporary";
}

TEST(Resume, ContinuesAResNetWithItsRunningStatistics) {
  const ScratchDir scratch;
  const Arguments run{
      "train",     "--model",   "resnet20",     "--data",       "synthetic:3x16x16:10",
      "--threads", "1",         "--batch-size", "16",           "--optimizer",
      "momentum",  "--augment", "crop-flip",    "--no-progress"};
  ASSERT_EQ(
      run_syncopate(joined(run, {"--steps", "12", "--metrics", scratch / "whole.jsonl"})).exit_code,
      0);
  const Arguments kept = joined(run, {"--checkpoint-dir", scratch / "ck", "--resume"});
  ASSERT_EQ(run_syncopate(joined(kept, {"--steps", "5"})).exit_code, 0);
  ASSERT_EQ(
      run_syncopate(joined(kept, {"--steps", "12", "--metrics", scratch / "rest.jsonl"})).exit_code,
      0);
  EXPECT_EQ(summary_of(scratch / "rest.jsonl").at("weights_hash"),
            summary_of(scratch / "whole.jsonl").at("weights_hash"));
  EXPECT_EQ(summary_of(scratch / "rest.jsonl").at("test_loss"),
            summary_of(scratch / "whole.jsonl").at("test_loss"));
}

TEST(Resume, OfAFinishedRunOnlyEvaluates) {
  const ScratchDir scratch;
  const Arguments run{"train",
                      "--model",
                      "mlp",
                      "--data",
                      "synthetic:1x8x8:4",
                      "--threads",
                      "1",
                      "--steps",
                      "30",
                      "--no-progress",
                      "--resume",
                      "--checkpoint-dir",
                      scratch / "ck",
                      "--metrics",
                      scratch / "m.jsonl"};
  const ProgramResult fresh = run_syncopate(run);
  ASSERT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_NE(fresh.err.find("starting at step 0"), std::string::npos) << fresh.err;
  const auto before = summary_of(scratch / "m.jsonl");
  const ProgramResult again = run_syncopate(run);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("nothing left to train"), std::string::npos) << again.err;
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("test_accuracy"), before.at("test_accuracy"));
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "summary").size(), 2U) << "a resumed run appends";
}

TEST(Resume, OfADirectoryInUseMustBeRequested) {
  const ScratchDir scratch;
  const Arguments run{
      "train",   "--model", "mlp",           "--data",           "synthetic:1x8x8:4",
      "--steps", "3",       "--no-progress", "--checkpoint-dir", scratch / "ck"};
  ASSERT_EQ(run_syncopate(run).exit_code, 0);
  const auto before = names_in(scratch / "ck");
  const ProgramResult again = run_syncopate(run);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("--resume"), std::string::npos) << again.err;
  EXPECT_EQ(names_in(scratch / "ck"), before);
}

TEST(Resume, OnOtherDataIsRefused) {
  const ScratchDir scratch;
  const Arguments run{"train",
                      "--model",
                      "mlp",
                      "--steps",
                      "3",
                      "--no-progress",
                      "--resume",
                      "--cache-dir",
                      SYNCOPATE_TEST_CACHE,
                      "--checkpoint-dir",
                      scratch / "ck"};
  ASSERT_EQ(run_syncopate(joined(run, {"--data", "synthetic:1x28x28:10"})).exit_code, 0);
  const auto before = names_in(scratch / "ck");
  const ProgramResult other = run_syncopate(joined(run, {"--data", "digits", "--steps", "6"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("trained on synthetic"), std::string::npos) << other.err;
  EXPECT_EQ(names_in(scratch / "ck"), before);
}

TEST(InitFrom, TakesTheWeightsAndStartsAtStepZero) {
  const ScratchDir scratch;
  const Arguments run{"train", "--model", "mlp", "--data", "synthetic:1x8x8:4", "--no-progress"};
  ASSERT_EQ(
      run_syncopate(joined(run, {"--steps", "300", "--checkpoint-dir", scratch / "ck"})).exit_code,
      0);
  const std::string file = scratch / ("ck/" + names_in(scratch / "ck").back());
  // The second run has another optimizer, so it takes only the weights from the checkpoint.
  ASSERT_EQ(run_syncopate(joined(run, {"--steps", "1", "--log-every", "1", "--init-from", file,
                                       "--optimizer", "sgd", "--metrics", scratch / "m.jsonl"}))
                .exit_code,
            0);
  const auto first = metrics_lines(scratch / "m.jsonl", "step").front();
  EXPECT_EQ(first.at("step"), 1);
  EXPECT_LT(first.at("loss"), 1.0);  // an untrained network has a loss of ln 4 = 1.39 or more
}

}  // namespace
}  // namespace syncopate::test
