#include "ps/shard/staleness.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/ps/shard/one_value.h"

namespace syncopate::ps {
namespace {

ConsistencyOptions compensating(StalenessRule rule) {
  return {.consistency = Consistency::kAsync,
          .staleness_rule = rule,
          .compensation = 0.5F,
          .mean_square_decay = 0.75F};
}

TEST(DelayCompensation, AddsLambdaTimesTheSquareTimesTheChangeOfTheValues) {
  const std::array gradient{2.0F, -3.0F};
  const std::array values{1.0F, 5.0F};
  const std::array read{0.0F, 7.0F};
  std::array<float, 2> result{};
  (void)compensate({.lambda = 0.5F, .read = read, .mean_square = {}}, gradient, values, result);
  EXPECT_EQ(result, (std::array{4.0F, -12.0F}));  // 2 + 0.5 * 2^2 * 1; -3 + 0.5 * 3^2 * -2
}

TEST(DelayCompensation, DividesAnAdaptiveLambdaByTheRootOfTheMeanSquare) {
  const std::array gradient{2.0F};
  const std::array values{1.0F};
  const std::array read{0.0F};
  std::array mean_square{4.0F};
  std::array<float, 1> result{};
  const DelayCompensation compensation{
      .lambda = 1.0F, .mean_square_decay = 0.75F, .read = read, .mean_square = mean_square};
  (void)compensate(compensation, gradient, values, result);
  EXPECT_EQ(mean_square[0], 4.0F);  // 0.75 * 4 + 0.25 * 2^2
  // The tolerance is 1e-6, because the rule adds 1e-7 under the root.
  EXPECT_NEAR(result[0], 4.0F, 1e-6F);  // 2 + 1 / sqrt(4) * 2^2 * 1
}

TEST(DelayCompensation, LeavesAGradientOfCurrentValuesButUpdatesTheMeanSquare) {
  const std::array gradient{-0.0F};
  std::array mean_square{4.0F};
  std::array<float, 1> result{7.0F};
  const auto same = compensate({.mean_square_decay = 0.75F, .read = {}, .mean_square = mean_square},
                               gradient, gradient, result);
  EXPECT_EQ(same.data(), gradient.data());
  EXPECT_EQ(mean_square[0], 3.0F);
}

TEST(CompensatingShard, KeepsTheValuesThatEachWorkerRead) {
  OneValue one(compensating(StalenessRule::kDelayCompensation), 2, 10.0F);
  one.read(0);
  one.read(1);
  one.push(0, 1, 1, {.gradient = 4.0F});
  EXPECT_EQ(one.value(), 6.0F) << "the values have not changed since";
  one.push(1, 1, 1, {.gradient = 2.0F});
  EXPECT_EQ(one.value(), 12.0F);  // 6 - (2 + 0.5 * 2^2 * (6 - 10))
  one.push(0, 2, 2, {.gradient = 2.0F});
  EXPECT_EQ(one.value(), -2.0F);  // 12 - (2 + 0.5 * 2^2 * (12 - 6))
}

TEST(CompensatingShard, LeavesAGradientOfUnknownValues) {
  OneValue one(compensating(StalenessRule::kDelayCompensation), 2, 10.0F);
  one.read(0);
  one.push(0, 1, 1, {.gradient = 4.0F});
  one.push(1, 1, 1, {.gradient = 2.0F});
  EXPECT_EQ(one.value(), 4.0F) << "worker 1 has not read values";
  one.push(0, 2, 1, {.gradient = 2.0F});
  EXPECT_EQ(one.value(), 2.0F) << "worker 0 has read newer values since";
  one.read(0);
  one.push(1, 2, 0, {.gradient = 1.0F});
  one.shard().join(0, 2, 0);
  one.push(0, 1, 4, {.gradient = 1.0F, .incarnation = 2});
  EXPECT_EQ(one.value(), 0.0F) << "an earlier incarnation read the values";
}

TEST(CompensatingShard, KeepsTheRoundedValuesThatAWorkerComputesWith) {
  // 10 + 2^-6 is exact in f32, and 10 is the nearest bf16.
  OneValue one(compensating(StalenessRule::kDelayCompensation), 2, 10.0F + 0x1p-6F,
               ValuesFormat::kBf16);
  one.read(0);
  one.push(1, 1, 1, {.gradient = 4.0F});
  EXPECT_EQ(one.value(), 6.0F + 0x1p-6F) << "the shard's own value is exact";
  one.push(0, 1, 1, {.gradient = 2.0F});  // 6 + 2^-6 - (2 + 0.5 * 2^2 * (6 + 2^-6 - 10))
  EXPECT_EQ(one.value(), 12.0F - 0x1p-6F);
}

TEST(CompensatingShard, KeepsOneMeanSquareForAllWorkers) {
  OneValue one(compensating(StalenessRule::kDelayCompensationAdaptive), 2, 10.0F);
  one.read(0);
  one.read(1);
  one.push(0, 1, 1, {.gradient = 4.0F});  // the mean square becomes 0.25 * 4^2 = 4
  EXPECT_EQ(one.value(), 6.0F);
  one.push(1, 1, 1, {.gradient = 2.0F});  // 8 = 6 - (2 + 0.5 / sqrt(4) * 2^2 * (6 - 10))
  EXPECT_NEAR(one.value(), 8.0F, 1e-5F);
}

}  // namespace
}  // namespace syncopate::ps
