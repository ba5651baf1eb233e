#include "models/backend/cpu/lanes.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

TEST(LanePool, RunsTheTaskOnceOnEveryLane) {
  LanePool lanes(3);
  std::vector<int> calls(3, 0);
  for (int run = 0; run < 100; ++run)
    lanes.run([&](int lane) { ++calls[static_cast<std::size_t>(lane)]; });
  EXPECT_EQ(calls, (std::vector{100, 100, 100}));
}

TEST(LanePool, HoldsLanesAtABarrierUntilAllHaveArrived) {
  LanePool lanes(4);
  std::vector<int> written(4, 0);
  std::vector<int> sums(4, 0);
  for (int round = 1; round <= 200; ++round) {
    lanes.run([&](int lane) {
      written[static_cast<std::size_t>(lane)] = round;
      lanes.barrier();
      int sum = 0;
      for (const int value : written) sum += value;
      sums[static_cast<std::size_t>(lane)] = sum;
      lanes.barrier();
    });
    for (const int sum : sums) ASSERT_EQ(sum, 4 * round);
  }
}

TEST(LanePool, RethrowsAFailureAndReleasesTheOtherLanesFromBarriers) {
  LanePool lanes(3);
  for (int failing = 0; failing < 3; ++failing) {
    const auto task = [&](int lane) {
      if (lane == failing) throw std::runtime_error("lane " + std::to_string(lane));
      lanes.barrier();
    };
    EXPECT_EQ(message_of<std::runtime_error>([&] { lanes.run(task); }),
              "lane " + std::to_string(failing))
        << failing;
    // The lane pool can be used again after the failure of a task.
    int calls = 0;
    lanes.run([&](int lane) {
      lanes.barrier();
      if (lane == 0) ++calls;
      lanes.barrier();
    });
    EXPECT_EQ(calls, 1);
  }
}

TEST(LanePool, RefusesCountsOutOfRange) {
  EXPECT_THROW(LanePool(0), UsageError);
  EXPECT_THROW(LanePool(1025), UsageError);
}

TEST(ShareOf, CoversAllElementsOnceInMultiplesOfTheGranule) {
  for (const std::int64_t count : {0, 1, 63, 64, 65, 1000, 4096}) {
    for (const int parts : {1, 2, 3, 7}) {
      std::int64_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const Share share = share_of(count, part, parts, 64);
        EXPECT_EQ(share.begin, next);
        EXPECT_TRUE(share.begin % 64 == 0 || share.begin == count);
        next = share.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace syncopate
