#include "ps/coordinator/reconnect_timeout.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kReconnectTimeout(30);

std::string await_expiry(ReconnectTimeout& timeout, bool has_checkpoints = false) {
  std::optional<std::string> reason;
  while (!reason) {
    std::this_thread::yield();
    reason = timeout.expired("server 1", has_checkpoints);
  }
  return *reason;
}

TEST(ReconnectTimeout, SaysHowLongADisconnectedServerSentNothing) {
  ReconnectTimeout timeout("this worker", kReconnectTimeout, {});
  EXPECT_FALSE(timeout.expired("server 1", false)) << "it is connected";
  timeout.begin();
  const std::string reason = await_expiry(timeout);
  EXPECT_EQ(reason.find("server 1 is disconnected, and sent nothing for "), 0U) << reason;
  EXPECT_TRUE(reason.ends_with(" s, in which this task was not scheduled for 0 s; see its output"))
      << reason;
}

TEST(ReconnectTimeout, BeginsAgainAfterATimeInWhichTheTaskWasNotScheduled) {
  ReconnectTimeout timeout("this worker", seconds(1000), {});
  timeout.begin();
  timeout.extend(seconds(4));
  EXPECT_FALSE(timeout.expired("server 1", false));
}

TEST(ReconnectTimeout, DoesNotCountTheSilenceInWhichTheTaskWasNotScheduled) {
  ReconnectTimeout timeout("this worker", seconds(1000), {});
  timeout.begin({.silence = seconds(2000), .unobserved = seconds(1500), .process = ""});
  EXPECT_FALSE(timeout.expired("server 1", false));
}

TEST(ReconnectTimeoutOfATaskThatWasAskedToStop, DoesNotBeginAgain) {
  ReconnectTimeout timeout("this worker", seconds(1000), [] { return true; });
  timeout.begin();
  const Deadline end = Deadline::after(seconds(30));
  std::optional<std::string> reason;
  while (!reason && !end.passed()) {
    reason = timeout.expired("server 1", false);
    timeout.extend(seconds(1));
    std::this_thread::yield();
  }
  ASSERT_TRUE(reason);
  EXPECT_TRUE(contains(*reason, "did not reconnect within 2 s"));
}

TEST(ReconnectTimeout, SaysHowLongTheTaskWasNotScheduled) {
  ReconnectTimeout timeout("this worker", kReconnectTimeout, {});
  timeout.begin();
  timeout.extend(milliseconds(20));
  timeout.extend(milliseconds(20));
  const std::string reason = await_expiry(timeout, true);
  EXPECT_TRUE(contains(
      reason, ", in which this task was not scheduled for 0.04 s; see its output, and start"));
}

TEST(ReconnectTimeout, CountsTheSilenceBeforeItBegan) {
  ReconnectTimeout timeout("this worker", seconds(5), {});
  timeout.begin(
      {.silence = seconds(6), .unobserved = seconds(1), .process = "; its process is stopped"});
  const std::string reason = await_expiry(timeout);
  EXPECT_EQ(reason.find("server 1 sent nothing for 6"), 0U) << reason;
  EXPECT_TRUE(contains(reason, "not scheduled for 1 s; its process is stopped; see"));
}

}  // namespace
}  // namespace syncopate::ps
