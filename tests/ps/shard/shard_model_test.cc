// Compares a shard with the model under random schedules: consistency rules, exactly-once pushes,
// snapshots, and that every request is answered.
#include <gtest/gtest.h>

#include "tests/ps/shard/shard_schedule.h"

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kSchedules = 100'000;

TEST(ShardUnderRandomSchedules, AgreesWithTheModel) {
  ShardSchedule::StepTotals tally;
  for (std::uint64_t number = 0; number < kSchedules; ++number) {
    ShardSchedule schedule(number);
    const std::string failure = schedule.run();
    ASSERT_EQ(failure, "") << "schedule " << number << ": " << schedule.describe();
    tally.updates += schedule.tally().updates;
    tally.late += schedule.tally().late;
    tally.answers_that_waited += schedule.tally().answers_that_waited;
    tally.snapshots += schedule.tally().snapshots;
  }
  // The random schedules must reach the rare events often enough.
  EXPECT_GT(tally.updates, 500'000);
  EXPECT_GT(tally.late, 50'000);
  EXPECT_GT(tally.answers_that_waited, 100'000);
  EXPECT_GT(tally.snapshots, 100'000);
}

TEST(ShardUnderRandomSchedules, OfThousandWorkersAgreesWithTheModel) {
  constexpr std::uint64_t kLargeSchedules = 100;
  constexpr int kWorkers = 1000;
  ShardSchedule::StepTotals tally;
  for (std::uint64_t number = 0; number < kLargeSchedules; ++number) {
    ShardSchedule schedule(number, kWorkers);
    const std::string failure = schedule.run();
    ASSERT_EQ(failure, "") << "schedule " << number << ": " << schedule.describe();
    tally.updates += schedule.tally().updates;
    tally.answers_that_waited += schedule.tally().answers_that_waited;
    tally.snapshots += schedule.tally().snapshots;
  }
  EXPECT_GT(tally.updates, 10'000);
  EXPECT_GT(tally.answers_that_waited, 10'000);
  EXPECT_GT(tally.snapshots, 30);
}

}  // namespace
}  // namespace syncopate::ps
