#include "ps/shard/staleness.h"

#include <gtest/gtest.h>

#include "ps/shard/staleness_counts.h"

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

TEST(StalenessHistogram, CountsFrom64OnInRangesOfASixteenthPowerOfTwo) {
  StalenessHistogram histogram;
  for (const std::uint64_t staleness : {63, 64, 67, 68, 127, 128, 135}) histogram.add(staleness);
  ASSERT_EQ(histogram.counts().size(), 81U);
  EXPECT_EQ(histogram.counts()[63], 1);
  EXPECT_EQ(histogram.counts()[64], 2) << "64 to 67";
  EXPECT_EQ(histogram.counts()[65], 1) << "68 to 71";
  EXPECT_EQ(histogram.counts()[79], 1) << "124 to 127";
  EXPECT_EQ(histogram.counts()[80], 2) << "128 to 135";
  EXPECT_EQ(StalenessHistogram::least_of(63), 63U);
  EXPECT_EQ(StalenessHistogram::least_of(79), 124U);
  EXPECT_EQ(StalenessHistogram::least_of(81), 136U);
}

TEST(StalenessHistogram, PutsEveryStalenessIntoTheRangeThatIncludesIt) {
  for (std::uint64_t staleness = 0; staleness < 10'000; ++staleness) {
    StalenessHistogram histogram;
    histogram.add(staleness);
    const std::size_t range = histogram.counts().size() - 1;
    ASSERT_LE(StalenessHistogram::least_of(range), staleness);
    ASSERT_GT(StalenessHistogram::least_of(range + 1), staleness);
  }
}

TEST(StalenessHistogram, HasABoundedNumberOfRangesButKeepsTheSum) {
  StalenessHistogram histogram;
  histogram.add(std::uint64_t{1} << 60);
  histogram.add(0xffffffffU);
  EXPECT_EQ(histogram.counts().size(), StalenessHistogram::kMostRanges);
  EXPECT_EQ(histogram.counts().back(), 2);
  EXPECT_EQ(histogram.max(), std::uint64_t{1} << 60);
  EXPECT_EQ(histogram.sum(), 0x1p60 + 4294967295.0);
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

TEST(StalenessCounts, AddUpAllWorkers) {
  StalenessCounts counts;
  counts.add(2, 6);
  counts.add(0, 0);
  counts.add(2, 3);
  EXPECT_EQ(counts.totals().count, 3);
  EXPECT_EQ(counts.totals().mean(), 3.0);
  EXPECT_EQ(counts.totals().max, 6U);
  const auto by_worker = counts.by_worker();
  ASSERT_EQ(by_worker.size(), 3U);
  EXPECT_EQ(by_worker[0].count(), 1);
  EXPECT_EQ(by_worker[1].count(), 0);
  EXPECT_EQ(by_worker[2].sum(), 9.0);
}

}  // namespace
}  // namespace syncopate::ps
