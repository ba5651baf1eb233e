#include "bench/compare/report/job_clock.h"

#include <gtest/gtest.h>

namespace syncopate::bench {
namespace {

TEST(JobClock, OfOneProcessEqualsThatOfTheProcess) {
  JobClock clock;
  clock.add(1000.0, 0.0);
  clock.add(1000.0, 5.0);
  EXPECT_EQ(clock.offsets(false).at(1000.0), 0.0);
}

// A worker is killed after 2 s and trains again at 3 s, while another worker continues.
TEST(JobClock, ContinuesForARestartedWorker) {
  for (const bool has_kills : {false, true}) {
    JobClock clock;
    clock.add(1000.0, 0.0);
    clock.add(1000.5, 0.0);
    clock.add(1000.0, 2.0);
    clock.add(1003.0, 0.0);
    clock.add(1000.5, 3.0);
    clock.add(1003.0, 1.0);
    EXPECT_DOUBLE_EQ(clock.offsets(has_kills).at(1000.5), 0.5);
    EXPECT_DOUBLE_EQ(clock.offsets(has_kills).at(1003.0), 3.0);
  }
}

// The job trained for 4 s, was killed, and started again 10 s after its first start.
TEST(JobClock, CountsTheTimeThatAKillCostIfTheWholeJobRestarts) {
  JobClock clock;
  clock.set_synchronous(1000.0, true);
  clock.add(1000.0, 0.0);
  clock.add(1000.0, 4.0);
  clock.add_evaluation(1000.0, 0.5);
  clock.add(1010.0, 0.0);
  clock.add(1010.0, 3.0);
  EXPECT_DOUBLE_EQ(clock.offsets(true).at(1010.0), 9.5) << "an evaluation paused it for 0.5 s";
  EXPECT_DOUBLE_EQ(clock.offsets(false).at(1010.0), 4.0) << "stopped and resumed by hand";
}

}  // namespace
}  // namespace syncopate::bench
