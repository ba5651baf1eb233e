#include "worker/train/metrics.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

// Returns the staleness of two workers: pushes of staleness 1, 1, 2 and of 2, 5.
const std::vector<WorkerStaleness> kWorkers = {
    {0, ps::StalenessHistogram::of({0, 2, 1}, 4.0, 2)},
    {1, ps::StalenessHistogram::of({0, 0, 1, 0, 0, 1}, 7.0, 5)}};

TEST(Staleness, OfAllWorkersIsTheMeanOverAllPushes) {
  const ps::StalenessHistogram all = merge_staleness(kWorkers);
  EXPECT_EQ(all.count(), 5);
  EXPECT_EQ(all.max(), 5U);
  EXPECT_DOUBLE_EQ(all.mean(), 11.0 / 5.0);
  EXPECT_EQ(all.counts(), (std::vector<std::int64_t>{0, 2, 2, 0, 0, 1}));
}

TEST(Staleness, IsDescribedInOneLine) {
  EXPECT_EQ(describe_staleness(kWorkers),
            "mean 2.20, max 5 over 5 bucket pushes; by worker 1.33 3.50");
}

TEST(Staleness, OfOneWorkerIsNotRepeated) {
  EXPECT_EQ(describe_staleness(std::span(kWorkers).first(1)),
            "mean 1.33, max 2 over 3 bucket pushes");
}

TEST(Staleness, OfNoWorkersIsZero) {
  EXPECT_EQ(describe_staleness({}), "mean 0.00, max 0 over 0 bucket pushes");
}

}  // namespace
}  // namespace syncopate
