// Tests --outer post-local, which sums gradients before the first round.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/train/local_sgd_case.h"

namespace syncopate {
namespace {

constexpr int kSums = 4;  // steps before the first round

// The second replica has the smaller share of 11 samples: 5.
Training post_local(const std::string& optimizer = "momentum") {
  return {.replicas = 2,
          .local = with_outer(outer_rule_row("post-local"), 3, kSums),
          .optimizer = optimizer,
          .learning_rate = 0.02F,
          .global_batch = 11,
          .has_batch_norm = true,
          .clip_norm = 0.5};
}

TEST(PostLocal, BeginsRoundsAtTheGivenEpoch) {
  LocalRun run(post_local());
  for (const std::int64_t expected : {1, 1, 1, 1, 0, 0, 3, 0, 0, 3}) {
    EXPECT_EQ(run.step().round_steps, expected);
    EXPECT_EQ(run.all_hold_equal_values(), expected != 0);
  }
}

TEST(PostLocal, IsMirroredUntilThenAndLocalSgdAfterwards) {
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    LocalRun run(post_local(optimizer));
    Training setup = post_local(optimizer);
    setup.strategy = "mirrored";
    LocalRun mirrored(setup);
    for (int step = 0; step < kSums; ++step) {
      const StepReport own = run.step();
      const StepReport expected = mirrored.step();
      EXPECT_EQ(run.values(), mirrored.values()) << optimizer << " " << step;
      EXPECT_EQ(own.scores.loss, expected.scores.loss);
      EXPECT_EQ(own.scores.num_samples, 11);
    }
    setup.strategy = "local-sgd";
    setup.local = {.sync_every = 3};
    LocalRun local(setup);
    Snapshot now = mirrored.strategy().snapshot();
    std::vector<Snapshot::Slot> of_workers;
    for (std::size_t worker = 0; worker < 2; ++worker) {
      for (const Snapshot::Slot& slot : now.slots) {
        of_workers.push_back({worker_slot(slot.name, worker), slot.values});
      }
    }
    now.slots = of_workers;
    local.strategy().restore(now);
    // The statistics of the replicas differ since their first step; only weights are compared.
    run.train_again(kSums + 1, kSums + 6, 0.02F, 1.0);
    local.train_again(kSums + 1, kSums + 6, 0.02F);
    EXPECT_EQ(run.values(), local.values()) << optimizer;
  }
}

TEST(PostLocal, SavesOneSetOfSlotsWhileAllWorkersHaveEqualOnes) {
  LocalRun run(post_local());
  run.step();
  const Snapshot early = run.strategy().snapshot_to_save();
  ASSERT_EQ(early.slots.size(), 1U);
  EXPECT_EQ(early.slots[0].name, "momentum");
  for (int step = 1; step < kSums + 3; ++step) run.step();
  EXPECT_EQ(run.strategy().snapshot_to_save().slots.size(), 2U);
}

TEST(PostLocal, ContinuesFromASnapshotOfEitherPhase) {
  for (const InnerState state : {InnerState::kKeep, InnerState::kReset, InnerState::kAverage}) {
    for (const int steps : {2, kSums, kSums + 3}) {
      Training setup = post_local("adam");
      setup.local.inner_state = state;
      LocalRun run(setup);
      for (int step = 0; step < steps; ++step) run.step();
      LocalRun resumed(setup);
      const Snapshot saved = run.strategy().snapshot_to_save();
      Snapshot given = saved;
      if (saved.slots.size() == 2 && resumed.strategy().slots_to_save().size() == 4) {
        // What a checkpoint with one set of slots gives to two workers.
        given.slots.clear();
        for (const std::string& name : resumed.strategy().slots_to_save()) {
          const auto set = std::ranges::find(saved.slots, common_slot(name), &Snapshot::Slot::name);
          given.slots.push_back({name, set->values});
        }
      }
      resumed.strategy().restore(given);
      for (LocalRun* const training : {&run, &resumed}) {
        if (steps < kSums) training->train_again(steps + 1, kSums, 0.02F, 0.0);
        training->train_again(std::max(steps, kSums) + 1, kSums + 6, 0.02F, 1.0);
      }
      EXPECT_EQ(resumed.values(), run.values()) << name(state) << " " << steps;
    }
  }
}

TEST(PostLocal, BeginsItsFirstRoundWithAFreshOptimizerIfStatesAreReset) {
  Training setup = post_local("adam");
  setup.local.inner_state = InnerState::kReset;
  LocalRun run(setup);
  for (int step = 0; step < kSums; ++step) run.step();
  setup.local = {.sync_every = 3, .inner_state = InnerState::kReset};
  LocalRun fresh(setup);
  Snapshot values = run.strategy().snapshot();
  values.slots.clear();
  fresh.strategy().restore(values);
  run.train_again(kSums + 1, kSums + 3, 0.02F, 1.0);
  fresh.train_again(1, 3, 0.02F);
  EXPECT_EQ(run.values(), fresh.values());
}

TEST(PostLocal, RequiresTheEpoch) {
  Training setup = post_local();
  setup.local.local_from.reset();
  const Graph graph = network_of(setup);
  const std::string refusal =
      message_of<UsageError>([&] { (void)make_strategy(options_of(setup), graph); });
  EXPECT_TRUE(contains(refusal, "--outer post-local requires --local-from EPOCH")) << refusal;
}

}  // namespace
}  // namespace syncopate
