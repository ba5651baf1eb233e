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

TEST(RunningStatistics, OfTheFirstWorkersAreKeptWhereThoseOfAllTakeTooMuchMemory) {
  RunningStatistics statistics({0.0F}, 2 * 2 * sizeof(float));  // 2 workers, 2 of each
  for (const float round : {1.0F, 2.0F, 3.0F}) {
    for (const int worker : {4, 1, 3}) {
      statistics.add(worker, static_cast<std::uint64_t>(round), 10,
                     {round * static_cast<float>(worker)});
    }
  }
  EXPECT_EQ(statistics.average({}), (Values{7.5F})) << "workers 4 and 1";
  statistics.forget(4);
  statistics.add(3, 4, 30, {11.5F});
  EXPECT_EQ(statistics.average({}), (Values{7.25F})) << "workers 1 and 3, of 30 samples each";
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
