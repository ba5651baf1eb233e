// Tests the search of the largest learning rate that one worker tolerates.
#include "bench/compare/stable_rate.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate::bench {
namespace {

constexpr double kGuessing = 2.303;  // the loss of guessing one of 10 classes

// Returns the losses of a short run: of the first 20 updates, and of the others.
std::vector<double> losses_of(double beginning, double end) {
  std::vector<double> losses(kShortRunUpdates, end);
  for (std::size_t i = 0; i < kAveragedUpdates; ++i) losses[i] = beginning;
  return losses;
}

TEST(ShortRun, IsStableIfTheLossFalls) {
  EXPECT_TRUE(short_run_of(losses_of(1.5, 0.4)).is_stable(kGuessing));
  EXPECT_TRUE(short_run_of(losses_of(7.9, 2.0)).is_stable(kGuessing)) << "it recovered";
  EXPECT_FALSE(short_run_of(losses_of(2.1, 2.15)).is_stable(kGuessing));
}

// With `mlp` on MNIST at a rate of 3.2, the loss rises from 3.1 to 3,700 and ends at 2.33.
TEST(ShortRun, IsNotStableIfTheLossFellToThatOfGuessing) {
  EXPECT_FALSE(short_run_of(losses_of(327.0, 2.33)).is_stable(kGuessing));
  EXPECT_FALSE(short_run_of(losses_of(7.9, 2.2)).is_stable(kGuessing))
      << "it learns next to nothing";
}

TEST(ShortRun, IsNotStableIfTrainingDiverged) {
  EXPECT_FALSE(short_run_of({}).is_stable(kGuessing));
  EXPECT_FALSE(short_run_of({2.3, 1.5, 0.4}).is_stable(kGuessing)) << "then not finite";
}

TEST(LargestStableRate, IsFoundByHalving) {
  std::vector<double> tried;
  const auto is_stable = [&](double rate) {
    tried.push_back(rate);
    return rate <= 0.25;
  };
  EXPECT_EQ(largest_stable_rate(0.8, is_stable), 0.2);
  EXPECT_EQ(tried, (std::vector{0.8, 0.4, 0.2}));
}

TEST(LargestStableRate, NeedsOneRunIfTheFirstRateIsStable) {
  int runs = 0;
  const auto is_stable = [&](double) { return ++runs > 0; };
  EXPECT_EQ(largest_stable_rate(0.08, is_stable), 0.08);
  EXPECT_EQ(runs, 1);
}

TEST(LargestStableRate, IsUnknownIfNoRateIsStable) {
  int runs = 0;
  const auto is_stable = [&](double) { return ++runs < 0; };
  EXPECT_FALSE(largest_stable_rate(1.0, is_stable));
  EXPECT_EQ(runs, 10);
}

}  // namespace
}  // namespace syncopate::bench
