// Tests --strategy pipeline as users run it: bits, resuming, evaluation, and messages.
#include <gtest/gtest.h>

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

const Arguments kRun = as_words(
    "train --model mnist-cnn --data synthetic:1x28x28:10:640 --batch-size 32 --accumulate 4 "
    "--optimizer adam --threads 1 --no-progress");
const Arguments kPipeline{"--strategy", "pipeline", "--stages", "2", "--share-devices"};

nlohmann::json summary_after(const TemporaryFolder& scratch, const Arguments& flags) {
  const std::string metrics = scratch / "metrics.jsonl";
  successful(run_syncopate(kRun + flags + Arguments{"--metrics", metrics}));
  return summary_of(metrics);
}

TEST(APipelineProgram, TrainsTheBitsOfOneDeviceAndResumesUnderIt) {
  const TemporaryFolder scratch;
  const nlohmann::json expected = summary_after(scratch, {"--steps", "30"});
  const nlohmann::json whole = summary_after(scratch, kPipeline + Arguments{"--steps", "30"});
  EXPECT_EQ(whole.at("weights_hash"), expected.at("weights_hash"));
  EXPECT_EQ(whole.at("test_loss"), expected.at("test_loss"));

  // A checkpoint is one file for every strategy: the run stops, and goes on without stages.
  const Arguments kept{"--checkpoint-dir", scratch / "ck", "--resume"};
  (void)summary_after(scratch, kPipeline + Arguments{"--steps", "11"} + kept);
  const nlohmann::json rest = summary_after(scratch, Arguments{"--steps", "30"} + kept);
  EXPECT_EQ(rest.at("weights_hash"), expected.at("weights_hash"));
}

TEST(APipelineProgram, SaysWhereItIsCutAndHowLongStagesWait) {
  const ProgramResult run = run_syncopate(kRun + kPipeline + Arguments{"--steps", "1"});
  EXPECT_TRUE(contains(run.err,
                       "pipeline: 2 stages, cut behind conv1 (36, 64 % of the work), 4 "
                       "micro-batches of at most 8 samples; by their work they wait 51, 12 % of "
                       "a step (--accumulate 8: 48, 7 %)"));
}

// Returns the idle fractions of the stages of a run without micro-batches.
std::vector<double> idle_fractions(const Arguments& where) {
  const TemporaryFolder scratch;
  const std::string metrics = scratch / "metrics.jsonl";
  const ProgramResult run = successful(run_syncopate(
      where +
      as_words(
          "--strategy pipeline --model mnist-cnn --data synthetic:1x28x28:10:2048 --batch-size 256 "
          "--steps 8 --eval-every 0 --threads 1 --no-progress --share-devices --metrics",
          metrics)));
  EXPECT_TRUE(contains(run.out, "stages          idle "));
  return summary_of(metrics).at("stage_idle_fractions").get<std::vector<double>>();
}

// With one micro-batch two stages never compute at the same time, whatever else the machine does:
// together they wait for a whole step, less the time of updates and of reading samples, which a
// busy machine makes longer.
TEST(APipelineProgram, CountsTheTimeInWhichAStageWaits) {
  const std::vector<double> alone = idle_fractions({"train", "--stages", "1"});
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_LT(alone[0], 0.05);
  for (const Arguments& where : {Arguments{"train", "--stages", "2"},
                                 Arguments{"launch", "--workers", "2", "--", "train"}}) {
    const std::vector<double> idle = idle_fractions(where);
    ASSERT_EQ(idle.size(), 2U);
    EXPECT_GT(idle[0] + idle[1], 0.5);
    EXPECT_LE(idle[0], 1.0);
    EXPECT_LE(idle[1], 1.0);
  }
}

TEST(APipelineProgram, RefusesWhatItCannotDo) {
  const auto error_of = [](const Arguments& flags) {
    const ProgramResult run = run_syncopate(kRun + kPipeline + flags);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    return run.err;
  };
  EXPECT_TRUE(contains(error_of({"--replicas", "2"}), "--stages N"));
  EXPECT_TRUE(contains(error_of({"--stages", "20"}), "cannot be cut into 20 stages"));
  expect_failure(run_syncopate(kRun + Arguments{"--stages", "2"}), 2, {"--strategy pipeline"});
}

}  // namespace
}  // namespace syncopate::test
