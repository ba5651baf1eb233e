// Tests that an interrupted and resumed run ends with the bits of the uninterrupted run.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// The run has almost four epochs of 781 steps, with a cosine schedule and Adam. A resume must
// restore position, step, slots and clock.
const Arguments kRun = as_words(
    "train --model mlp --data synthetic:1x8x8:4 --threads 1 --steps 3000 --lr-schedule cosine "
    "--log-every 1 --no-progress");

TEST(Resume, AfterKillsAtSeveralStepsEqualsTheUninterruptedRun) {
  const TemporaryFolder scratch;
  successful(run_syncopate(kRun + Arguments{"--metrics", scratch / "whole.jsonl"}));
  const auto expected = summary_of(scratch / "whole.jsonl");

  const Arguments interrupted =
      kRun + Arguments{"--checkpoint-dir", scratch / "ck", "--checkpoint-every", "7", "--resume"};
  // The test kills the run before the first checkpoint, and then at later steps, also beyond the
  // end of an epoch. How many further steps each process completes depends on timing; the result
  // must not.
  for (const int steps : {2, 9, 31, 800}) {
    const auto metrics = scratch / ("killed-" + std::to_string(steps) + ".jsonl");
    RunningProgram program(syncopate_command(interrupted + Arguments{"--metrics", metrics}));
    ASSERT_TRUE(program.wait_until_file_has(metrics, "\"event\":\"step\"", steps)) << steps;
    program.send(SIGKILL);
    ASSERT_EQ(program.wait().ended_by_signal, SIGKILL)
        << "it ended before the kill: nothing was tested";
  }
  const ProgramResult last =
      successful(run_syncopate(interrupted + Arguments{"--metrics", scratch / "last.jsonl"}));
  EXPECT_TRUE(contains(last.err, "resumed from"));
  const auto summary = summary_of(scratch / "last.jsonl");
  EXPECT_EQ(summary.at("weights_hash"), expected.at("weights_hash"));
  EXPECT_EQ(summary.at("test_loss"), expected.at("test_loss"));
  EXPECT_EQ(summary.at("steps"), 3000);
  EXPECT_EQ(summary.at("samples"), expected.at("samples"));
  EXPECT_EQ(names_in(scratch / "ck").size(), 3U)
      << "the newest three are kept, and nothing temporary";
}

TEST(Resume, ContinuesAResNetWithItsRunningStatistics) {
  const TemporaryFolder scratch;
  const Arguments run = as_words(
      "train --model resnet20 --data synthetic:3x16x16:10 --threads 1 --batch-size 16 --optimizer "
      "momentum --augment crop-flip --no-progress");
  successful(run_syncopate(run + Arguments{"--steps", "12", "--metrics", scratch / "whole.jsonl"}));
  const Arguments kept = run + Arguments{"--checkpoint-dir", scratch / "ck", "--resume"};
  successful(run_syncopate(kept + Arguments{"--steps", "5"}));
  successful(run_syncopate(kept + Arguments{"--steps", "12", "--metrics", scratch / "rest.jsonl"}));
  EXPECT_EQ(summary_of(scratch / "rest.jsonl").at("weights_hash"),
            summary_of(scratch / "whole.jsonl").at("weights_hash"));
  EXPECT_EQ(summary_of(scratch / "rest.jsonl").at("test_loss"),
            summary_of(scratch / "whole.jsonl").at("test_loss"));
}

TEST(Resume, OfAFinishedRunOnlyEvaluates) {
  const TemporaryFolder scratch;
  const Arguments run = as_words(
      "train --model mlp --data synthetic:1x8x8:4 --threads 1 --steps 30 --no-progress --resume "
      "--checkpoint-dir",
      scratch / "ck", "--metrics", scratch / "m.jsonl");
  const ProgramResult fresh = successful(run_syncopate(run));
  EXPECT_TRUE(contains(fresh.err, "starting at step 0"));
  const auto before = summary_of(scratch / "m.jsonl");
  const ProgramResult again = successful(run_syncopate(run));
  EXPECT_TRUE(contains(again.err, "nothing left to train"));
  EXPECT_EQ(summary_of(scratch / "m.jsonl").at("test_accuracy"), before.at("test_accuracy"));
  EXPECT_EQ(metrics_lines(scratch / "m.jsonl", "summary").size(), 2U) << "a resumed run appends";
}

TEST(Resume, OfADirectoryInUseMustBeRequested) {
  const TemporaryFolder scratch;
  const Arguments run = as_words(
      "train --model mlp --data synthetic:1x8x8:4 --steps 3 --no-progress --checkpoint-dir",
      scratch / "ck");
  successful(run_syncopate(run));
  const auto before = names_in(scratch / "ck");
  expect_failure(run_syncopate(run), 2, {"--resume"});
  EXPECT_EQ(names_in(scratch / "ck"), before);
}

TEST(Resume, OnOtherDataIsRefused) {
  const TemporaryFolder scratch;
  const Arguments run = as_words("train --model mlp --steps 3 --no-progress --resume --cache-dir",
                                 SYNCOPATE_TEST_CACHE, "--checkpoint-dir", scratch / "ck");
  successful(run_syncopate(run + Arguments{"--data", "synthetic:1x28x28:10"}));
  const auto before = names_in(scratch / "ck");
  expect_failure(run_syncopate(run + Arguments{"--data", "digits", "--steps", "6"}), 2,
                 {"trained on synthetic"});
  EXPECT_EQ(names_in(scratch / "ck"), before);
}

TEST(InitFrom, TakesTheWeightsAndStartsAtStepZero) {
  const TemporaryFolder scratch;
  const Arguments run = as_words("train --model mlp --data synthetic:1x8x8:4 --no-progress");
  successful(run_syncopate(run + Arguments{"--steps", "300", "--checkpoint-dir", scratch / "ck"}));
  const std::string file = scratch / ("ck/" + names_in(scratch / "ck").back());
  // The second run has another optimizer, so it takes only the weights from the checkpoint.
  successful(run_syncopate(run + as_words("--steps 1 --log-every 1 --init-from", file,
                                          "--optimizer sgd --metrics", scratch / "m.jsonl")));
  const auto first = metrics_lines(scratch / "m.jsonl", "step").front();
  EXPECT_EQ(first.at("step"), 1);
  EXPECT_LT(first.at("loss"), 1.0);  // an untrained network has a loss of ln 4 = 1.39 or more
}

}  // namespace
}  // namespace syncopate::test
