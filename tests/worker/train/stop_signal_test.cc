#include "worker/train/stop_signal.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

bool is_blocked(int number) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, number) == 1;
}

TEST(StopSignal, ReportsEachSignalOnceAndByName) {
  StopSignal signals;
  EXPECT_EQ(signals.poll(), std::nullopt);
  raise(SIGUSR1);
  EXPECT_EQ(signals.poll(), "SIGUSR1");
  raise(SIGTERM);
  EXPECT_EQ(signals.poll(), "SIGTERM");
  EXPECT_EQ(signals.poll(), std::nullopt);
}

TEST(StopSignal, RecordsThatASignalArrived) {
  StopSignal signals;
  EXPECT_FALSE(signals.was_asked());
  raise(SIGTERM);
  EXPECT_TRUE(signals.was_asked()) << "before the first poll";
  EXPECT_EQ(signals.poll(), "SIGTERM");
  EXPECT_TRUE(signals.was_asked());
}

TEST(StopSignal, LeavesTheSignalsAsTheyWere) {
  ASSERT_FALSE(is_blocked(SIGTERM));
  {
    const StopSignal signals;
    EXPECT_TRUE(is_blocked(SIGTERM));
  }
  EXPECT_FALSE(is_blocked(SIGTERM));
}

TEST(StopSignal, DropsSignalsThatWereNotPolled) {
  {
    const StopSignal signals;
    raise(SIGINT);
    raise(SIGTERM);
  }
  EXPECT_FALSE(is_blocked(SIGTERM)) << "and still the process goes on";
}

TEST(StopSignal, ThatTheParentIgnoresStaysIgnored) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    StopSignal signals;
    raise(SIGINT);
    EXPECT_EQ(signals.poll(), std::nullopt);
  }
  std::signal(SIGINT, before);
}

}  // namespace
}  // namespace syncopate
