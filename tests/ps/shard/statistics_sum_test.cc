#include "ps/shard/statistics_sum.h"

#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

using Values = std::vector<float>;

TEST(StatisticsSum, IsWeightedBySamplesAndCompleteWithTheLastWorker) {
  StatisticsSum sum(3);
  EXPECT_FALSE(sum.add(2, 1, 10, {7.0F, 0.0F}));
  EXPECT_FALSE(sum.add(0, 1, 30, {3.0F, 1.0F}));
  EXPECT_EQ(sum.add(1, 1, 0, {}), (Values{4.0F, 0.75F})) << "(30 * 3 + 10 * 7) / 40";
}

TEST(StatisticsSum, HasTheSameBitsInAnyOrderOfArrival) {
  // 1 + 2^60 - 2^60 depends on the order of additions.
  const std::vector<Values> shares = {{1.0F}, {0x1p60F}, {-0x1p60F}};
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}}) {
    StatisticsSum sum(3);
    std::optional<Values> average;
    for (const int worker : order) {
      average = sum.add(worker, 1, 1, shares[static_cast<std::size_t>(worker)]);
    }
    EXPECT_EQ(average, (Values{0.0F}));
  }
}

TEST(StatisticsSum, IgnoresSharesThatAreSentAgain) {
  StatisticsSum sum(2);
  EXPECT_FALSE(sum.add(0, 5, 1, {2.0F}));
  EXPECT_FALSE(sum.add(0, 5, 1, {2.0F}));
  EXPECT_EQ(sum.add(1, 5, 1, {4.0F}), (Values{3.0F}));
  EXPECT_FALSE(sum.add(1, 5, 1, {4.0F}));
  EXPECT_FALSE(sum.add(0, 6, 1, {8.0F}));
  EXPECT_FALSE(sum.add(1, 5, 1, {4.0F})) << "of the average before";
  EXPECT_EQ(sum.add(1, 6, 3, {0.0F}), (Values{2.0F}));
}

TEST(StatisticsSum, OfNoSamplesHasNoAverage) {
  StatisticsSum sum(2);
  EXPECT_FALSE(sum.add(0, 1, 0, {}));
  EXPECT_FALSE(sum.add(1, 1, 0, {}));
  EXPECT_FALSE(sum.add(2, 1, 1, {1.0F})) << "no worker of the job";
}

}  // namespace
}  // namespace syncopate::ps
