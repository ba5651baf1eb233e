// Tests the experiments of the presets.
#include "bench/compare/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/compare/report/claims.h"
#include "bench/compare/run_plan.h"
#include "deploy/cli/command_line.h"
#include "tests/bench/compare/two_variants.h"
#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

// The options of each experiment of each preset.
std::vector<CompareOptions> experiments() {
  std::vector<CompareOptions> all;
  for (const PresetRow& row : presets()) {
    for (const auto apply : {row.apply, row.apply_to_cifar10}) {
      if (apply == nullptr) continue;
      CompareOptions& options = all.emplace_back();
      options.preset = row.name;
      apply(options);
    }
  }
  return all;
}

TEST(Preset, HasFlagsThatTrainAccepts) {
  for (CompareOptions& options : experiments()) {
    options.data = "synthetic:1x28x28:10:16384";
    for (const RunSpec& run : plan_runs(options, 16384)) {
      EXPECT_NO_THROW(parse_train(command_line_of(run.train), environment_of(run)))
          << options.preset << ": " << run.variant.label;
    }
  }
}

TEST(Preset, RepeatsAClaimAboutItsOwnVariants) {
  int claims = 0;
  for (const CompareOptions& options : experiments()) {
    for (const PaperClaim& claim : options.claims) {
      ++claims;
      for (const std::string& label : {claim.better, claim.worse}) {
        EXPECT_EQ(std::ranges::count(options.variants, label, &Variant::label), 1) << label;
      }
    }
  }
  EXPECT_EQ(claims, 5);
}

TEST(Preset, CanBeGivenAsFlags) {
  const auto row = std::ranges::find(presets(), "one-slow", &PresetRow::name);
  EXPECT_EQ(flags_in_place_of(*row, "digits", "mnist-cnn"),
            "--workers 8 --servers 1 --model mnist-cnn --batch-size-per-replica 32 --epochs 3 "
            "--service-time constant:1 --slow worker=7,factor=4 --strategies "
            "'parameter-server:sync{optimizer=sgd,learning-rate=0.4},"
            "parameter-server:sync+backup:1{optimizer=sgd,learning-rate=0.4},"
            "parameter-server:ssp:3{optimizer=sgd,learning-rate=0.1},"
            "parameter-server:async{optimizer=sgd,learning-rate=0.1}'");
  const auto on_links = std::ranges::find(presets(), "local-updates", &PresetRow::name);
  const std::string flags = flags_in_place_of(*on_links, "digits", "mlp");
  EXPECT_TRUE(contains(flags,
                       "--epochs 3 --clusters '10gbit{link-rate=10gbit},1gbit{link-rate=1gbit},"
                       "100mbit{link-rate=100mbit}' --strategies 'multi-worker-mirrored{"))
      << flags;
  EXPECT_TRUE(contains(flags, ",local-sgd:average:64{optimizer=sgd,learning-rate="));
  const auto two = std::ranges::find(presets(), "stale-rules", &PresetRow::name);
  EXPECT_TRUE(contains(flags_in_place_of(*two, "digits", "mlp"),
                       "--clusters 'exponential{service-time=exponential:100},heavy-tailed{",
                       "parameter-server:async+rennala:4{optimizer=sgd,learning-rate=0.4}"));
  const auto mixed = std::ranges::find(presets(), "staleness", &PresetRow::name);
  EXPECT_EQ(flags_in_place_of(*mixed, "digits", "mlp"), "") << "its variants have 1 to 16 workers";
}

TEST(Preset, StatesItsLearningRates) {
  for (const CompareOptions& options : experiments()) {
    for (const RunSpec& run : plan_runs(options, 60'000)) {
      EXPECT_EQ(run.learning_rate_rule, "preset") << options.preset << ": " << run.variant.label;
      EXPECT_TRUE(run.variant.has_flag("--learning-rate"));
      if (run.variant.has_flag("--learning-rate-scale")) continue;
      EXPECT_EQ(word_after(command_line_of(run.train), "--learning-rate-scale"), "none")
          << run.variant.label;
      if (run.variant.has_flag("--warmup-epochs")) continue;
      EXPECT_EQ(word_after(command_line_of(run.train), "--warmup-epochs"), "0")
          << run.variant.label;
    }
  }
}

TEST(Preset, HasEnoughSeedsForClaimsAboutTime) {
  for (const CompareOptions& options : experiments()) {
    EXPECT_GE(options.seeds, kSeedsForClaims) << options.preset;
  }
}

}  // namespace
}  // namespace syncopate::bench
