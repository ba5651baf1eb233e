// Tests the command lines by which compare starts real runs.
#include "bench/compare/real_run.h"

#include <gtest/gtest.h>

#include "bench/compare/run_plan.h"
#include "tests/bench/compare/two_variants.h"
#include "tests/support/as_words.h"

namespace syncopate::bench {
namespace {

TEST(RealRun, UsesLaunchIfItHasSeveralTasks) {
  const auto runs = plan_runs(two_variants(), 1000);
  const RealRunOptions options{.program = "/p/syncopate", .metrics = "/m"};
  const Words alone = command_of(runs[0], options);
  EXPECT_EQ(alone[0], "/p/syncopate");
  EXPECT_EQ(alone[1], "train");
  EXPECT_EQ(word_after(alone, "--metrics"), "/m");
  const Words launched = command_of(runs[1], options);
  EXPECT_EQ(Words(launched.begin() + 1, launched.begin() + 8),
            as_words("launch --workers 4 --servers 2 -- train"));
}

TEST(RealRun, StartsOneTaskForEachStage) {
  CompareOptions options = two_variants();
  options.variants = {parse_variant("pipeline:8", 3, 2)};
  const Words command =
      command_of(plan_runs(options, 1000)[0], {.program = "/p/syncopate", .metrics = "/m"});
  EXPECT_EQ(Words(command.begin() + 1, command.begin() + 6),
            (Words{"launch", "--workers", "3", "--", "train"}));
  EXPECT_EQ(word_after(command, "--accumulate"), "8");
}

TEST(RealRun, KeepsACheckpointAtEachEvaluationIfAWorkerRestarts) {
  const auto runs = plan_runs(two_variants(), 1000);
  RealRunOptions options{.program = "/p/syncopate", .metrics = "/m", .checkpoints = "/c"};
  options.kills = {{.worker = 1, .at_seconds = 1.0, .restart_seconds = 0.5}};
  const Words command = command_of(runs[0], options);
  EXPECT_EQ(word_after(command, "--restart-after"), "0.5");
  EXPECT_EQ(word_after(command, "--checkpoint-dir"), "/c");
  EXPECT_EQ(word_after(command, "--checkpoint-every"), word_after(command, "--eval-every-steps"));
  options.kills[0].restart_seconds.reset();
  EXPECT_EQ(word_after(command_of(runs[0], options), "--checkpoint-dir"), "");
}

}  // namespace
}  // namespace syncopate::bench
