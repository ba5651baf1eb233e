// Tests which flags of train compare accepts after `--`.
#include "bench/compare/train_flags.h"

#include <gtest/gtest.h>

#include <utility>

#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

using Words = std::vector<std::string>;

std::string refusal_of(const Words& flags) {
  return message_if_thrown<UsageError>([&] { parse_shared_train_flags(flags); });
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
  for (const auto& [flags, says] : cases) EXPECT_TRUE(contains(refusal_of(flags), says));
}

TEST(SharedTrainFlags, IncludeAllOthers) {
  EXPECT_EQ(refusal_of(as_words(
                "--optimizer sgd --learning-rate=0.1 --threads 2 --devices cuda --share-devices "
                "--learning-rate-scale linear --deterministic --init-from f --transport tcp")),
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
  EXPECT_TRUE(contains(refusal_of({"--optimizer", "sdg"}), "did you mean 'sgd'"));
}

}  // namespace
}  // namespace syncopate::bench
