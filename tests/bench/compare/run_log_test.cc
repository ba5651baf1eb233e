// Who of a run's processes ended badly, as its log tells.
#include "bench/compare/run_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace syncopate::bench {
namespace {

class RunLogTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  void say(std::size_t stream, const std::string& text) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    EXPECT_FALSE(log_.read_from(stream, ends[0])) << "the stream ends";
    ::close(ends[0]);
  }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("syncopate_run_log_" + std::to_string(getpid()));
  RunLog log_{file_};
};

TEST_F(RunLogTest, KnowsAKillThatWasWanted) {
  say(1, "launch: worker 1 was ended by signal 9 (SIGKILL)\n");
  say(0, "[server 0] syncopate: served 3750 pushes; staleness: mean 0.00, max 0\n");
  EXPECT_TRUE(log_.tells_of_none_but({"worker 1"}));
  EXPECT_FALSE(log_.tells_of_none_but({"worker 0"})) << "somebody else killed it";
  EXPECT_EQ(log_.reason({"worker 1"}),
            "worker 1 was killed, as asked for, and the job ended with it");
}

TEST_F(RunLogTest, TakesTheReasonFromWhoFailedAndNotFromWhoSpokeLast) {
  say(1,
      "launch: worker 1 was ended by signal 9 (SIGKILL)\n"
      "[worker 0] syncopate: rank 1 was lost\n"
      "launch: worker 0 exited with 1\n");
  say(0, "[server 0] syncopate: served 3750 pushes\n");
  EXPECT_FALSE(log_.tells_of_none_but({"worker 1"}));
  EXPECT_EQ(log_.reason({"worker 1"}), "[worker 0] syncopate: rank 1 was lost");
}

TEST_F(RunLogTest, ForgetsWhoWasStartedAgain) {
  say(1,
      "launch: worker 1 was ended by signal 9 (SIGKILL); restarting it (1 of 1)\n"
      "launch: worker 0 exited with 1\n"
      "launch: restart 1 of 1\n"
      "launch: worker 1 was ended by signal 9 (SIGKILL) and has no restart left\n");
  EXPECT_TRUE(log_.tells_of_none_but({"worker 1"}));
}

TEST_F(RunLogTest, OfAProcessWithoutRolesHasItsLastLine) {
  say(1, "reading\nsyncopate: no such fi");
  say(0, "");
  EXPECT_EQ(log_.reason({}), "syncopate: no such fi");
}

}  // namespace
}  // namespace syncopate::bench
