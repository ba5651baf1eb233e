#include "strategies/cluster/watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr milliseconds kPatience(3500);
constexpr milliseconds kWait(100);

// An observer with its own clock that looks round every kWait.
class TheWatch : public testing::Test {
 protected:
  // Sleeps as planned, or longer: then it was stopped.
  void sleep(nanoseconds time) {
    watch_.round(now_, kWait);
    now_ += time;
    watch_.round(now_, nanoseconds(0));
  }
  void sleep_as_planned(nanoseconds time) {
    for (nanoseconds slept(0); slept < time; slept += kWait) sleep(kWait);
  }

  Watch::Time now_{};
  Watch watch_{2, kPatience, now_};
};

TEST_F(TheWatch, NamesWhoHasBeenSilentForTooLong) {
  sleep_as_planned(seconds(2));
  watch_.heard(0, now_);
  sleep_as_planned(milliseconds(1400));
  EXPECT_EQ(watch_.silent(now_), std::nullopt);
  EXPECT_EQ(watch_.time_left(now_), milliseconds(100));
  sleep_as_planned(milliseconds(100));
  EXPECT_EQ(watch_.silent(now_), 1);
}

TEST_F(TheWatch, ForgivesTimeInWhichItWasStoppedItself) {
  sleep_as_planned(seconds(1));
  sleep(seconds(600));
  EXPECT_EQ(watch_.silent(now_), std::nullopt);
  EXPECT_EQ(watch_.time_left(now_), kPatience - seconds(1) - kWait);
}

TEST_F(TheWatch, SaysHowLongItWasStoppedItself) {
  EXPECT_EQ(watch_.round(now_, kWait), nanoseconds(0));
  now_ += kWait + seconds(4);
  EXPECT_EQ(watch_.round(now_, kWait), seconds(4));
  now_ += kWait + milliseconds(500);
  EXPECT_EQ(watch_.round(now_, kWait), nanoseconds(0)) << "a busy machine is no stop";
}

TEST_F(TheWatch, ForgivesTimeBetweenItsSleepsToo) {
  sleep(kWait);
  now_ += seconds(600);
  sleep(kWait);
  EXPECT_EQ(watch_.silent(now_), std::nullopt);
}

TEST_F(TheWatch, GoesOnWatchingAfterItWasStopped) {
  sleep(seconds(600));
  watch_.heard(0, now_);
  sleep_as_planned(kPatience - kWait);
  EXPECT_EQ(watch_.silent(now_), 1);
}

TEST_F(TheWatch, DoesNotForgiveASmallDelay) {
  for (int i = 0; i < 10; ++i) sleep(kWait + milliseconds(250));
  EXPECT_EQ(watch_.silent(now_), 0);
}

}  // namespace
}  // namespace syncopate
