#include "ps/shard/staleness.h"

#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

TEST(StalenessHistogram, WithoutPushesHasMeanAndMaximumZero) {
  const StalenessHistogram histogram;
  EXPECT_EQ(histogram.mean(), 0.0);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_TRUE(histogram.counts().empty());
}

TEST(StalenessHistogram, CountsEachStaleness) {
  StalenessHistogram histogram;
  for (const std::uint64_t staleness : {2, 0, 2}) histogram.add(staleness);
  EXPECT_EQ(histogram.counts(), (std::vector<std::int64_t>{1, 0, 2}));
  EXPECT_EQ(histogram.count(), 3);
  EXPECT_EQ(histogram.mean(), 4.0 / 3.0);
  EXPECT_EQ(histogram.max(), 2U);
}

TEST(StalenessHistogram, CountsTheLargestTogetherButKeepsTheirSum) {
  StalenessHistogram histogram;
  histogram.add(1'000'000);
  histogram.add(1023);
  EXPECT_EQ(histogram.counts().size(), 1024U);
  EXPECT_EQ(histogram.counts().back(), 2);
  EXPECT_EQ(histogram.max(), 1'000'000U);
  EXPECT_EQ(histogram.mean(), 500'511.5);
}

TEST(StalenessHistogram, MergesByAddingCounts) {
  StalenessHistogram histogram;
  histogram.add(1);
  StalenessHistogram other;
  other.add(3);
  other.add(1);
  histogram.merge(other);
  EXPECT_EQ(histogram.counts(), (std::vector<std::int64_t>{0, 2, 0, 1}));
  EXPECT_EQ(histogram.count(), 3);
  EXPECT_EQ(histogram.max(), 3U);
}

TEST(StalenessHistogram, IsRebuiltFromItsFields) {
  StalenessHistogram histogram;
  histogram.add(5);
  histogram.add(2000);
  const auto copy = StalenessHistogram::of(histogram.counts(), histogram.sum(), histogram.max());
  EXPECT_EQ(copy.counts(), histogram.counts());
  EXPECT_EQ(copy.count(), 2);
  EXPECT_EQ(copy.mean(), 1002.5);
  EXPECT_EQ(copy.max(), 2000U);
}

}  // namespace
}  // namespace syncopate::ps
