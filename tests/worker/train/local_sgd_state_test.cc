// Tests what --strategy local-sgd restores, and what happens to the workers' optimizers at the end
// of a round.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/worker/train/local_sgd_case.h"

namespace syncopate {
namespace {

TEST(LocalSgdState, StartsARoundFromTheValuesOfASnapshot) {
  LocalRun run({.replicas = 2});
  run.train(3);
  LocalRun other({.replicas = 2});
  other.strategy().restore(run.strategy().snapshot());
  const Values restored = other.values();
  EXPECT_EQ(restored, run.values());
  other.set_learning_rate(0.0F);
  EXPECT_EQ(other.train(3).values(), restored);
}

// Returns the blocks of a snapshot, copied.
std::vector<Values> blocks_of(const Snapshot& snapshot) {
  std::vector<Values> blocks = {copy_of(snapshot.values), copy_of(snapshot.state)};
  for (const Snapshot::Slot& slot : snapshot.slots) blocks.push_back(copy_of(slot.values));
  return blocks;
}

TEST(LocalSgdState, ContinuesFromASnapshotWithTheSlotsOfEveryWorker) {
  for (const OuterRuleRow& row : outer_rules_of_means()) {
    const Training training{.replicas = 2,
                            .local = with_outer(row, 2),
                            .optimizer = "momentum",
                            .has_batch_norm = true};
    LocalRun whole(training);
    whole.train(4);
    const Snapshot saved = whole.strategy().snapshot_to_save();
    std::vector<std::string> names;
    for (const Snapshot::Slot& slot : saved.slots) names.push_back(slot.name);
    EXPECT_EQ(names, whole.strategy().slots_to_save());
    EXPECT_EQ(names[0], "momentum@0");
    EXPECT_EQ(names[1], "momentum@1");
    EXPECT_NE(copy_of(saved.slots[0].values), copy_of(saved.slots[1].values));

    LocalRun resumed(training);
    resumed.set_learning_rate(0.5F);
    resumed.step();  // leaves other values, slots and another rate
    resumed.step();
    resumed.strategy().restore(saved);
    EXPECT_EQ(blocks_of(resumed.strategy().snapshot_to_save()), blocks_of(saved)) << row.name;
    // Another rate, so that the outer momentum of slowmo is scaled.
    whole.train_again(5, 8, 0.01F);
    resumed.train_again(5, 8, 0.01F);
    EXPECT_EQ(resumed.values(), whole.values()) << row.name;
  }
}

Values slot_of(LocalRun& run, std::size_t slot) {
  return copy_of(run.strategy().snapshot_to_save().slots[slot].values);
}

TEST(LocalSgdState, AveragesTheStateOfOptimizersBySamples) {
  // Shares of 6 and 5 samples.
  Training training{.replicas = 2, .optimizer = "adam", .learning_rate = 0.01F, .global_batch = 11};
  LocalRun kept(training);
  kept.train(3);
  training.local.inner_state = InnerState::kAverage;
  LocalRun averaged(training);
  averaged.train(3);
  EXPECT_EQ(averaged.strategy().slots_to_save(),
            (std::vector<std::string>{"exp_avg", "exp_avg_sq"}))
      << "all workers have one state";
  EXPECT_EQ(averaged.values(), kept.values()) << "states matter in the next round";
  for (const std::size_t slot : {0, 1}) {
    const Values first = slot_of(kept, slot);
    const Values second = slot_of(kept, 2 + slot);
    Values mean(first.size());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (6 * first[i] + 5 * second[i]) / 11;
    EXPECT_LT(distance(slot_of(averaged, slot), mean), 1e-6);
  }
  LocalRun resumed(training);
  resumed.strategy().restore(averaged.strategy().snapshot_to_save());
  EXPECT_EQ(slot_of(resumed, 1), slot_of(averaged, 1));
  averaged.train_again(4, 6, 0.01F);
  resumed.train_again(4, 6, 0.01F);
  EXPECT_EQ(resumed.values(), averaged.values());
}

TEST(LocalSgdState, BeginsARoundWithAFreshOptimizerAndAFreshCount) {
  const Training training{.replicas = 2,
                          .local = {.sync_every = 3, .inner_state = InnerState::kReset},
                          .optimizer = "adam",
                          .learning_rate = 0.01F};
  LocalRun run(training);
  run.train(3);
  EXPECT_TRUE(run.strategy().slots_to_save().empty());
  LocalRun fresh(training);
  fresh.strategy().restore(run.strategy().snapshot_to_save());
  run.train_again(4, 6, 0.01F);
  fresh.train_again(1, 3, 0.01F);  // the numbers of the steps differ, and the updates do not
  EXPECT_EQ(run.values(), fresh.values());
}

}  // namespace
}  // namespace syncopate
