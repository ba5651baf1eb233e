#include "bench/compare/report/summary.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

// Returns the number of the evaluation at which the run reached 95 %; 0 if it did not.
std::int64_t reached_at(const std::vector<double>& accuracies) {
  const auto point = time_to_target(*made_up_run(1, accuracies, 0.01).result, 0.95);
  return point ? point->samples / 100 : 0;
}

TEST(TimeToTarget, IsThatOfTheFirstEvaluationThatLasts) {
  EXPECT_EQ(reached_at({0.9, 0.95, 0.96, 0.9}), 2);
  EXPECT_EQ(reached_at({0.9, 0.95, 0.94, 0.95, 0.9}), 2) << "one of the next two is there";
  EXPECT_EQ(reached_at({0.9, 0.95, 0.94, 0.94, 0.95, 0.96}), 5) << "a spike";
  EXPECT_EQ(reached_at({0.9, 0.94, 0.95, 0.94}), 0) << "the last but one needs the last";
  EXPECT_EQ(reached_at({0.9, 0.94, 0.94, 0.95}), 4) << "the last counts alone";
  EXPECT_EQ(reached_at({0.9}), 0);
}

TEST(FinalAccuracy, IsTheMeanOfTheEvaluationsInTheLastTenth) {
  std::vector<double> accuracies(20, 0.5);
  accuracies[17] = 0.1;
  accuracies[18] = 0.8;
  accuracies[19] = 0.9;
  const ComparedRun run = made_up_run(1, accuracies, 0.01);
  EXPECT_NEAR(final_accuracy(*run.result, "test"), 0.85, 1e-12);
  EXPECT_EQ(final_accuracy(*run.result, "validation"), 0.9) << "the one on the test set";
  EXPECT_EQ(final_accuracy(*made_up_run(1, {0.3, 0.7}, 0.01).result, "test"), 0.7);
}

TEST(ComparableTimes, AreThoseOfOneMachineWithAnyCommit) {
  Comparison comparison = made_up_comparison({made_up_variant("a", 2, {1.0}, {0.97})});
  const Machine one{.host = "a", .cpus = 2, .version = "1", .commit = "x", .date = "today"};
  Machine other = one;
  other.commit = "y";
  other.date = "tomorrow";
  comparison.machines = {one, other};
  EXPECT_TRUE(summarise(comparison).front().has_comparable_times);
  comparison.machines.back().cpus = 4;
  EXPECT_FALSE(summarise(comparison).front().has_comparable_times);
}

// Returns a row with runs that climb by this much from the fourth fifth to the last, with some
// noise.
VariantSummary climbing(double by, double noise) {
  ComparedVariant variant{.label = "a", .workers = 2, .runs = {}};
  for (int seed = 1; seed <= 5; ++seed) {
    const double own = by + noise * (seed - 3);
    variant.runs.push_back(
        made_up_run(static_cast<std::uint64_t>(seed),
                    {0.5, 0.5, 0.6, 0.6, 0.7, 0.7, 0.8, 0.8, 0.8 + own, 0.8 + own}, 0.01));
  }
  return summarise(made_up_comparison({variant})).front();
}

TEST(StillLearning, IsARiseAboveHalfAPointAndAboveTheNoise) {
  EXPECT_TRUE(climbing(0.02, 0.001).is_still_learning);
  EXPECT_FALSE(climbing(0.004, 0.0).is_still_learning);
  EXPECT_FALSE(climbing(0.02, 0.02).is_still_learning);
  EXPECT_FALSE(climbing(-0.02, 0.0).is_still_learning);
}

}  // namespace
}  // namespace syncopate::bench
