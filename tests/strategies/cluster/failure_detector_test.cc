#include "strategies/cluster/failure_detector.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr milliseconds kTimeout(3500);
constexpr milliseconds kSleep(100);

// The fixture plays the thread that observes the peers. It has a simulated clock and announces to
// the failure detector sleeps of at most kSleep.
class Detector : public testing::Test {
 protected:
  // Announces a sleep of kSleep and then sleeps for `time`. A time longer than kSleep means that
  // the observing thread was stopped.
  void sleep(nanoseconds time) {
    detector_.update(now_, kSleep);
    now_ += time;
    detector_.update(now_, nanoseconds(0));
  }
  void sleep_as_planned(nanoseconds time) {
    for (nanoseconds slept(0); slept < time; slept += kSleep) sleep(kSleep);
  }

  FailureDetector::Time now_{};
  FailureDetector detector_{2, kTimeout, now_};
};

TEST_F(Detector, NamesThePeerThatIsSilentForTooLong) {
  sleep_as_planned(seconds(2));
  detector_.on_message(0, now_);
  sleep_as_planned(milliseconds(1400));
  EXPECT_EQ(detector_.silent(now_), std::nullopt);
  EXPECT_EQ(detector_.time_left(now_), milliseconds(100));
  sleep_as_planned(milliseconds(100));
  EXPECT_EQ(detector_.silent(now_), 1);
}

TEST_F(Detector, DoesNotCountTimeInWhichTheObserverWasStopped) {
  sleep_as_planned(seconds(1));
  sleep(seconds(600));
  EXPECT_EQ(detector_.silent(now_), std::nullopt);
  EXPECT_EQ(detector_.time_left(now_), kTimeout - seconds(1) - kSleep);
}

TEST_F(Detector, ReportsHowLongTheObserverWasStopped) {
  EXPECT_EQ(detector_.update(now_, kSleep), nanoseconds(0));
  now_ += kSleep + seconds(4);
  EXPECT_EQ(detector_.update(now_, kSleep), seconds(4));
  now_ += kSleep + milliseconds(500);
  EXPECT_EQ(detector_.update(now_, kSleep), nanoseconds(0)) << "a busy machine is no stop";
}

TEST_F(Detector, DoesNotCountLongTimesBetweenSleeps) {
  sleep(kSleep);
  now_ += seconds(600);
  sleep(kSleep);
  EXPECT_EQ(detector_.silent(now_), std::nullopt);
}

TEST_F(Detector, DetectsSilenceAfterTheObserverWasStopped) {
  sleep(seconds(600));
  detector_.on_message(0, now_);
  sleep_as_planned(kTimeout - kSleep);
  EXPECT_EQ(detector_.silent(now_), 1);
}

TEST_F(Detector, CountsSmallDelaysOfTheObserver) {
  for (int i = 0; i < 10; ++i) sleep(kSleep + milliseconds(250));
  EXPECT_EQ(detector_.silent(now_), 0);
}

TEST(FailureNotice, AcceptsASubscriptionAfterASubscriberHasThrown) {
  const auto notice = std::make_shared<FailureNotice>();
  notice->subscribe([](const std::string&) { throw std::runtime_error("no"); });
  EXPECT_THROW(notice->set("rank 2 was lost"), std::runtime_error);

  const auto promise = std::make_shared<std::promise<std::string>>();
  std::future<std::string> reason = promise->get_future();
  // The subscribing thread is detached, so that the test ends even if subscribe() blocks.
  std::thread([notice, promise] {
    notice->subscribe([promise](const std::string& text) { promise->set_value(text); });
  }).detach();
  ASSERT_EQ(reason.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(reason.get(), "rank 2 was lost");
}

}  // namespace
}  // namespace syncopate
