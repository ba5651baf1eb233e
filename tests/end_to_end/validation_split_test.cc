// Tests --split: evaluations during training read the validation samples, the result is that of the
// test split, and a checkpoint belongs to its split.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

const Arguments kSplit = as_words(
    "--model mlp --data synthetic:1x8x8:4:500 --split val=0.2 --steps 40 --eval-every-steps 20");

struct Under {
  const char* name;
  Arguments where;
};
std::ostream& operator<<(std::ostream& out, const Under& under) { return out << under.name; }

class ASplit : public testing::TestWithParam<Under> {};

TEST_P(ASplit, IsWatchedInTrainingAndTheTestSplitIsReported) {
  TrainingRuns runs;
  const auto summary = runs.summary_of(GetParam().where, kSplit);
  const auto evaluations = runs.evaluations();
  ASSERT_GE(evaluations.size(), 2U);
  for (const auto& line : evaluations) {
    EXPECT_EQ(line.at("samples"), 100);
    EXPECT_TRUE(line.contains("val_accuracy")) << line;
    EXPECT_FALSE(line.contains("test_accuracy")) << line;
  }
  EXPECT_EQ(summary.at("val_loss"), evaluations.back().at("val_loss"));
  EXPECT_EQ(summary.at("val_accuracy"), evaluations.back().at("val_accuracy"));
  EXPECT_NE(summary.at("test_loss"), summary.at("val_loss"));
}

INSTANTIATE_TEST_SUITE_P(
    Under, ASplit,
    testing::Values(Under{"OneDevice", one_device()}, Under{"Mirrored", mirrored(2)},
                    Under{"Workers", multi_worker(2)},
                    Under{"CentralStorage", {"train", "--strategy", "central-storage"}},
                    Under{"ParameterServer", parameter_servers({.workers = 2, .servers = 1})}),
    [](const auto& parameters) { return std::string(parameters.param.name); });

TEST(ACheckpointOfASplit, IsEvaluatedAndResumedWithItsSplitOnly) {
  const TemporaryFolder scratch;
  const Arguments run = as_words("train --no-progress --threads 1 --checkpoint-dir", scratch / "ck",
                                 "--metrics", scratch / "m.jsonl") +
                        kSplit;
  successful(run_syncopate(run));
  const auto summary = summary_of(scratch / "m.jsonl");
  const ProgramResult found =
      successful(run_syncopate(as_words("evaluate --json --threads 1 --checkpoint",
                                        scratch / ("ck/" + names_in(scratch / "ck").back()))));
  EXPECT_EQ(nlohmann::json::parse(found.out).at("test_loss"), summary.at("test_loss"));

  expect_failure(
      run_syncopate(as_words("train --no-progress --threads 1 --checkpoint-dir", scratch / "ck",
                             "--resume --model mlp --data synthetic:1x8x8:4:500 --steps 50")),
      2, {"with --split val=0.2, this run is without --split"});
}

TEST(ASplitFlag, IsRefusedInOneLineWhenItIsNoFraction) {
  expect_failure(run_syncopate({"train", "--split", "0.1"}), 2,
                 {"--split 0.1: expected val=FRACTION"});
}

}  // namespace
}  // namespace syncopate::test
