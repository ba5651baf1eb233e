// What the data sets of TFRecord files share.
#include "worker/input/record/record_samples.h"

#include <gtest/gtest.h>

#include "tests/worker/input/record/record_folders.h"

namespace syncopate {
namespace {

class SamplesInRecords : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
};

// A cgroup of the job, below which each step has one of its own without a limit.
TEST_F(SamplesInRecords, UnpackIntoATasksPartOfHalfOfTheMemoryThatTheJobHasLeft) {
  write_text(path("proc/meminfo"), "MemAvailable:   8000 kB\n");
  const auto budget = [&](int local_tasks) {
    return unpacked_budget({.local_tasks = local_tasks}, folder_.path()).bytes_left;
  };
  EXPECT_EQ(budget(1), 4096000);
  write_text(path("proc/self/cgroup"), "0::/job/step\n");
  write_text(path("sys/fs/cgroup/job/memory.max"), "5000000\n");
  write_text(path("sys/fs/cgroup/job/memory.current"), "2000000\n");
  write_text(path("sys/fs/cgroup/job/step/memory.max"), "max\n");
  EXPECT_EQ(budget(1), 1500000);
  EXPECT_EQ(budget(3), 500000);
}

}  // namespace
}  // namespace syncopate
