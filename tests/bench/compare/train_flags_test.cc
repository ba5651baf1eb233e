// Tests which flags of train compare accepts after `--`.
#include "bench/compare/train_flags.h"

#include <gtest/gtest.h>

#include <utility>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using Words = std::vector<std::string>;

std::string refusal_of(const Words& flags) {
  try {
    parse_shared_train_flags(flags);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SharedTrainFlags, ExcludeThoseThatCompareSets) {
  const std::pair<Words, const char*> cases[] = {
      {{"--model", "mnist-cnn"}, "--model after --"},
      {{"--data=digits"}, "--data after --"},
      {{"--optimizer", "sgd", "--steps", "5"}, "--budget updates --updates N"},
      {{"--seed", "5"}, "--seeds N and --first-seed S before the --"},
      {{"--strategy", "mirrored"}, "--strategies"},
      {{"--eval-every-steps", "3"}, "--evaluations"},
      {{"--eval-when", "due"}, "evaluates after training"},
      {{"--metrics", "f"}, "--report"},
      {{"--checkpoint-dir", "d"}, "--report"}};
  for (const auto& [flags, says] : cases) {
    EXPECT_NE(refusal_of(flags).find(says), std::string::npos) << refusal_of(flags);
  }
}

TEST(SharedTrainFlags, IncludeAllOthers) {
  EXPECT_EQ(refusal_of({"--optimizer", "sgd", "--learning-rate=0.1", "--threads", "2", "--devices",
                        "cuda", "--share-devices", "--learning-rate-scale", "linear",
                        "--deterministic", "--init-from", "f", "--transport", "tcp"}),
            "");
}

TEST(SharedTrainFlags, AreRefusedForARunThatIgnoresThem) {
  const SharedTrainFlags shared = parse_shared_train_flags({"--compress=bf16", "--threads", "2"});
  TrainOptions run = shared.options;
  run.strategy.name = "mirrored";
  EXPECT_EQ(ignored_flag(shared, run, "mirrored", false),
            "--compress bf16: not applicable to mirrored; leave out the flag or the variant");
  run.strategy.name = "parameter-server";
  EXPECT_EQ(ignored_flag(shared, run, "parameter-server:async", false), "");
}

// The note on neutral flags says that they change no virtual run.
TEST(SharedTrainFlags, AreNotRefusedForAVirtualRunThatTheyCannotChange) {
  const SharedTrainFlags shared = parse_shared_train_flags({"--transport", "tcp"});
  TrainOptions run = shared.options;
  run.strategy.name = "one-device";
  EXPECT_EQ(ignored_flag(shared, run, "one-device", true), "");
  EXPECT_NE(ignored_flag(shared, run, "one-device", false), "");
  const SharedTrainFlags compressed = parse_shared_train_flags({"--compress=bf16"});
  run = compressed.options;
  run.strategy.name = "one-device";
  EXPECT_NE(ignored_flag(compressed, run, "one-device", true), "");
}

TEST(SharedTrainFlags, MayBelongToAnOptimizerThatOnlyAVariantChooses) {
  EXPECT_EQ(refusal_of({"--nesterov", "--lr-factor", "0.2"}), "");
}

TEST(SharedTrainFlags, AreParsedAsByTrain) {
  EXPECT_NE(refusal_of({"--optimizer", "sdg"}).find("did you mean 'sgd'"), std::string::npos);
}

}  // namespace
}  // namespace syncopate::bench
