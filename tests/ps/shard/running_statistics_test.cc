#include "ps/shard/running_statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate::ps {
namespace {

using Values = std::vector<float>;

TEST(RunningStatistics, AreTheInitialOnesBeforeTheFirstStep) {
  RunningStatistics statistics({1.0F, 2.0F});
  EXPECT_EQ(statistics.average({}), (Values{1.0F, 2.0F}));
}

TEST(RunningStatistics, AreWeightedByTheSamplesOfEachWorker) {
  RunningStatistics statistics({0.0F});
  statistics.add(0, 1, 10, {1.0F});
  statistics.add(1, 1, 10, {5.0F});
  statistics.add(1, 2, 20, {9.0F});
  EXPECT_EQ(statistics.average({}), (Values{7.0F})) << "(10 * 1 + 30 * 9) / 40";
}

TEST(RunningStatistics, AreThoseOfTheSnapshotAndNotOfLaterPushes) {
  RunningStatistics statistics({0.0F});
  statistics.add(0, 4, 10, {3.0F});
  statistics.add(0, 5, 10, {8.0F});
  const std::vector<WorkerClock> entries = {{.worker = 0, .incarnation = 1, .sequence = 4}};
  EXPECT_EQ(statistics.average(entries), (Values{3.0F}));
}

TEST(RunningStatistics, OfARemovedWorkerAreLeftOut) {
  RunningStatistics statistics({0.0F});
  statistics.add(0, 1, 10, {1.0F});
  statistics.add(1, 1, 10, {5.0F});
  statistics.forget(0);
  EXPECT_EQ(statistics.average({}), (Values{5.0F}));
}

TEST(RunningStatistics, StayUnchangedIfNoneWereSent) {
  RunningStatistics statistics({2.0F});
  statistics.add(0, 1, 10, {});
  EXPECT_EQ(statistics.average({}), (Values{2.0F}));
}

TEST(RunningStatistics, OfAnotherLengthAreLeftOut) {
  RunningStatistics statistics({2.0F});
  statistics.add(0, 1, 10, {3.0F, 4.0F});
  EXPECT_EQ(statistics.average({}), (Values{2.0F}));
}

}  // namespace
}  // namespace syncopate::ps
