// Checks that the log of a run shows which of its processes failed.
#include "bench/compare/run_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace syncopate::bench {
namespace {

class RunLogTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  void write(std::size_t stream, const std::string& text) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    EXPECT_FALSE(log_.read_from(stream, ends[0])) << "the stream ends";
    ::close(ends[0]);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "log";
  RunLog log_{file_};
};

TEST_F(RunLogTest, RecognisesAWantedKill) {
  write(1, "launch: worker 1 was ended by signal 9 (SIGKILL)\n");
  write(0, "[server 0] syncopate: served 3750 pushes; staleness: mean 0.00, max 0\n");
  EXPECT_TRUE(log_.has_only_wanted_failures({"worker 1"}));
  EXPECT_FALSE(log_.has_only_wanted_failures({"worker 0"})) << "worker 1 was not to be killed";
  EXPECT_EQ(log_.reason({"worker 1"}), "worker 1 was killed by --kill, and the job ended with it");
}

TEST_F(RunLogTest, RecognisesAWantedKillAfterWhichTheJobGoesOn) {
  write(1,
        "launch: worker 1 was ended by signal 9 (SIGKILL) and has no restart left; the job goes on "
        "with 1 worker, which also trains its batches\n"
        "launch: the other workers have completed the job; the exit code is 1 because worker 1 was "
        "ended by signal 9 (SIGKILL)\n");
  EXPECT_TRUE(log_.has_only_wanted_failures({"worker 1"}));
}

TEST_F(RunLogTest, HasTheReasonOfTheFailedProcessAndNotTheLastLine) {
  write(1,
        "launch: worker 1 was ended by signal 9 (SIGKILL)\n"
        "[worker 0] syncopate: rank 1 was lost\n"
        "launch: worker 0 exited with 1\n");
  write(0, "[server 0] syncopate: served 3750 pushes\n");
  EXPECT_FALSE(log_.has_only_wanted_failures({"worker 1"}));
  EXPECT_EQ(log_.reason({"worker 1"}), "[worker 0] syncopate: rank 1 was lost");
}

TEST_F(RunLogTest, HasTheWantOfMemoryForWhichTheKernelEndedAProcess) {
  write(1,
        "[worker 1] mlp, 101770 parameters\n"
        "launch: worker 1 was ended by signal 9 (SIGKILL), probably by the kernel for want of "
        "memory (limit "
        "of the memory cgroup: 30 MiB)\n");
  EXPECT_EQ(log_.reason({}),
            "worker 1 was ended by signal 9 (SIGKILL), probably by the kernel for want of memory "
            "(limit of "
            "the memory cgroup: 30 MiB)");
}

TEST_F(RunLogTest, IgnoresRestartedProcesses) {
  write(1,
        "launch: worker 1 was ended by signal 9 (SIGKILL); restarting it (1 of 1)\n"
        "launch: worker 0 exited with 1\n"
        "launch: restart 1 of 1\n"
        "launch: worker 1 was ended by signal 9 (SIGKILL) and has no restart left\n");
  EXPECT_TRUE(log_.has_only_wanted_failures({"worker 1"}));
}

TEST_F(RunLogTest, OfASingleProcessHasItsLastLine) {
  write(1, "reading\nsyncopate: no such fi");
  write(0, "");
  EXPECT_EQ(log_.reason({}), "syncopate: no such fi");
}

}  // namespace
}  // namespace syncopate::bench
