#include <gtest/gtest.h>

#include "tests/ps/coordinator/schedule_job.h"

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kJobs = 40000;

TEST(ARandomJob, TrainsEveryBatchUnderAnyFailures) {
  int lost_workers = 0;
  int lost_servers = 0;
  int stopped = 0;
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= kJobs; ++seed) {
    ScheduledJob job(seed);
    job.run();
    ASSERT_TRUE(job.mistakes().empty())
        << "seed " << seed << ": " << job.mistakes().front() << " (" << job.description() << ")";
    lost_workers += job.lost_workers() ? 1 : 0;
    lost_servers += job.lost_servers() ? 1 : 0;
    stopped += job.was_stopped() ? 1 : 0;
    if (job.has_succeeded()) continue;
    // A job may fail if a roll-back is impossible: it needs snapshot files on all servers and live
    // workers.
    ++failed;
    ASSERT_TRUE(job.lost_servers() && (job.failure()->find("snapshot") != std::string::npos ||
                                       job.failure()->find("left") != std::string::npos))
        << "seed " << seed << ": " << job.description();
  }
  // The random jobs must contain enough faults, and few may fail.
  EXPECT_GT(lost_workers, 1000);
  EXPECT_GT(lost_servers, 500);
  EXPECT_GT(stopped, 500);
  EXPECT_LT(failed, 400);
}

// Jobs of 1,000 workers and of 100 servers. One of both would have 50 times as many messages.
TEST(ARandomJob, OfThousandWorkersOrHundredServersTrainsEveryBatch) {
  constexpr std::uint64_t kLargeJobs = 12;
  int succeeded = 0;
  for (std::uint64_t seed = 1; seed <= kLargeJobs; ++seed) {
    ScheduledJob job(seed, seed % 2 == 0 ? ScheduledJob::Size{.workers = 1000, .servers = 2}
                                         : ScheduledJob::Size{.workers = 5, .servers = 100});
    job.run();
    ASSERT_TRUE(job.mistakes().empty())
        << "seed " << seed << ": " << job.mistakes().front() << " (" << job.description() << ")";
    succeeded += job.has_succeeded() ? 1 : 0;
  }
  EXPECT_GE(succeeded, 10);
}

}  // namespace
}  // namespace syncopate::ps
