// Tests the predicted time of a real comparison.
#include "bench/compare/expected_time.h"

#include <gtest/gtest.h>

#include "tests/bench/compare/two_variants.h"

namespace syncopate::bench {
namespace {

// Steps of 10 samples take 0.1 s on one thread of two CPUs.
constexpr RunConditions kConditions{
    .step_seconds = 0.1, .cpus = 2, .train_samples = 1000, .watched_samples = 0};

CompareOptions of_one_epoch() {
  CompareOptions options = two_variants();
  options.epochs = 1;
  return options;
}

// 25 updates of 40 samples: 100 steps of 0.1 s on two CPUs, and one second for the start.
TEST(ExpectedTime, DividesTheStepsAmongTheCpus) {
  const CompareOptions options = of_one_epoch();
  EXPECT_NEAR(expected_seconds(options, options.variants[0], kConditions), 1.0 + 100 * 0.1 / 2,
              1e-9);
}

// A worker makes 25 of the steps, each with a delay of 20 ms; delays need no CPU.
TEST(ExpectedTime, AddsTheDelaysOfAWorker) {
  CompareOptions options = of_one_epoch();
  options.cluster.faults.service_time.mean_milliseconds = 20.0;
  EXPECT_NEAR(expected_seconds(options, options.variants[0], kConditions), 6.0 + 25 * 0.02, 1e-9);
}

TEST(ExpectedTime, IsAtLeastABudgetOfSeconds) {
  CompareOptions options = of_one_epoch();
  options.budget = Budget::kSeconds;
  options.seconds = 60.0;
  EXPECT_NEAR(expected_seconds(options, options.variants[0], kConditions), 61.0, 1e-9);
}

TEST(ExpectedTime, CountsTheEvaluations) {
  CompareOptions options = of_one_epoch();
  RunConditions conditions = kConditions;
  conditions.watched_samples = 100;
  options.evaluations = 5;
  const double with_evaluations = expected_seconds(options, options.variants[0], conditions);
  EXPECT_GT(with_evaluations, 6.5);
  EXPECT_LT(with_evaluations, 6.0 + 5 * 10 * 0.1) << "an evaluation computes no gradients";
}

}  // namespace
}  // namespace syncopate::bench
