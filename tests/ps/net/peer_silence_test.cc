#include "ps/net/peer_silence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr milliseconds kTimeout(3500);
constexpr milliseconds kSleep(50);

// Plays the thread that observes one peer, with a simulated clock. The test sets what the kernel
// tells about the peer's process and about the observer's own.
class APeerSilence : public testing::Test {
 protected:
  // Announces a sleep of kSleep and sleeps for `time`. A longer time means that the observing
  // thread was stopped or had no CPU.
  void sleep(nanoseconds time) {
    observer_.update(now_, kSleep);
    now_ += time;
    observer_.update(now_, nanoseconds(0));
  }
  // Sleeps as announced for `time`, or until the peer is lost. Returns how long it was silent.
  std::optional<LostPeer> watch_for(nanoseconds time) {
    std::optional<LostPeer> lost;
    for (nanoseconds slept(0); slept < time && !lost; slept += kSleep) {
      sleep(kSleep);
      lost = watch_.check(now_, observer_, in_set_up_);
    }
    return lost;
  }
  void hear() {
    watch_.on_message(now_, observer_);
    has_looked_ = false;
  }

  ProcessState state_ = ProcessState::kUnknown;
  bool observer_has_cpu_ = true;
  bool in_set_up_ = false;
  PeerSilence::Time now_{};
  ObserverClock observer_{now_};
  PeerSilence watch_{kTimeout, [this] { return look(); }, now_, observer_};

 private:
  // Only a second look finds that a thread did not run since the look before it.
  ProcessState look() {
    const bool is_first = !std::exchange(has_looked_, true);
    const bool is_certain = state_ == ProcessState::kEnded || state_ == ProcessState::kStopped;
    if (!is_first && !observer_has_cpu_ && !is_certain) return ProcessState::kUnobserved;
    return is_first && state_ == ProcessState::kStarved ? ProcessState::kAlive : state_;
  }

  bool has_looked_ = false;  // since the last message
};

TEST_F(APeerSilence, LosesASilentPeerOfAnotherMachineAtTheSecondLookAfterTheTimeout) {
  EXPECT_FALSE(watch_for(seconds(2)));
  hear();
  EXPECT_FALSE(watch_for(kTimeout - kSleep));
  EXPECT_EQ(watch_.time_left(now_, observer_), kSleep);
  EXPECT_FALSE(watch_for(kSleep));
  EXPECT_EQ(watch_.time_left(now_, observer_), PeerSilence::kLookInterval);
  const auto lost = watch_for(PeerSilence::kLookInterval);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->silence, kTimeout + PeerSilence::kLookInterval);
  EXPECT_EQ(describe(*lost),
            "sent nothing for 3.75 s, in which this task was not scheduled for 0 s");
}

TEST_F(APeerSilence, WaitsLongerDuringSetUp) {
  in_set_up_ = true;
  EXPECT_FALSE(watch_for(3 * kTimeout - kSleep));
  EXPECT_TRUE(watch_for(kSleep));
}

TEST_F(APeerSilence, CountsNoTimeInWhichAnotherThreadOfTheObserverHadNoCpu) {
  for (const ProcessState state :
       {ProcessState::kUnknown, ProcessState::kAlive, ProcessState::kBlocked}) {
    SCOPED_TRACE(static_cast<int>(state));
    state_ = state;
    observer_has_cpu_ = false;
    EXPECT_FALSE(watch_for(seconds(60)));
    observer_has_cpu_ = true;
    const auto lost = watch_for(seconds(60));
    ASSERT_TRUE(lost);
    EXPECT_GE(lost->unobserved, seconds(56));
    EXPECT_LE(lost->unobserved, lost->silence);
    EXPECT_EQ(lost->process, state == ProcessState::kUnknown
                                 ? ""
                                 : "; its process is alive and had no CPU for 0 s");
    hear();
  }
}

TEST_F(APeerSilence, LosesNoPeerWhileTheObserverHadNoCpuAMomentAgo) {
  EXPECT_FALSE(watch_for(kTimeout));
  for (int i = 0; i < 20; ++i) {
    observer_has_cpu_ = i % 2 != 0;
    EXPECT_FALSE(watch_for(PeerSilence::kLookInterval)) << i;
  }
}

TEST_F(APeerSilence, NamesAKilledAndAStoppedPeerAtTheTimeoutEvenDuringSetUp) {
  in_set_up_ = true;
  state_ = ProcessState::kEnded;
  EXPECT_EQ(describe(watch_for(seconds(60)).value()),
            "sent nothing for 3.5 s, in which this task was not scheduled for 0 s; its process has "
            "ended");
  hear();
  state_ = ProcessState::kStopped;
  EXPECT_EQ(describe(watch_for(seconds(60)).value()),
            "sent nothing for 3.5 s, in which this task was not scheduled for 0 s; its process is "
            "stopped");
}

TEST_F(APeerSilence, DoesNotLoseAPeerThatHasNoCpu) {
  state_ = ProcessState::kStarved;
  EXPECT_FALSE(watch_for(seconds(600)));
  hear();
  EXPECT_FALSE(watch_for(seconds(600)));
}

TEST_F(APeerSilence, NamesAPeerThatIsStoppedAfterItHadNoCpu) {
  state_ = ProcessState::kStarved;
  EXPECT_FALSE(watch_for(seconds(20)));
  state_ = ProcessState::kStopped;
  EXPECT_TRUE(watch_for(PeerSilence::kLookInterval + kSleep));
}

// A peer timeout of 5 s has a timeout of 3.5 s; the rest is for the other tasks to end.
TEST_F(APeerSilence, LosesALivePeerThatHangsWithinThePeerTimeout) {
  state_ = ProcessState::kAlive;
  EXPECT_FALSE(watch_for(kTimeout));
  EXPECT_EQ(describe(watch_for(milliseconds(750)).value()),
            "sent nothing for 4.25 s, in which this task was not scheduled for 0 s; its process is "
            "alive and had no CPU for 0 s");
}

TEST_F(APeerSilence, WaitsLongerForAPeerThatHangsDuringSetUp) {
  in_set_up_ = true;
  state_ = ProcessState::kAlive;
  EXPECT_FALSE(watch_for(3 * kTimeout - kSleep));
  EXPECT_TRUE(watch_for(PeerSilence::kLookInterval + kSleep));
}

TEST_F(APeerSilence, WaitsLongerForAPeerThatWaitsForADisk) {
  state_ = ProcessState::kBlocked;
  EXPECT_FALSE(watch_for(3 * kTimeout - kSleep));
  EXPECT_TRUE(watch_for(PeerSilence::kLookInterval + kSleep));
}

TEST_F(APeerSilence, DoesNotLoseAPeerThatHadNoCpuAMomentAgo) {
  EXPECT_FALSE(watch_for(kTimeout));
  for (int i = 0; i < 20; ++i) {
    state_ = i % PeerSilence::kLooks == 0 ? ProcessState::kStarved : ProcessState::kAlive;
    EXPECT_FALSE(watch_for(PeerSilence::kLookInterval)) << i;
  }
}

TEST_F(APeerSilence, SaysHowLongALivePeerHadNoCpu) {
  state_ = ProcessState::kStarved;
  EXPECT_FALSE(watch_for(seconds(23)));
  state_ = ProcessState::kAlive;
  const auto lost = watch_for(seconds(2));
  ASSERT_TRUE(lost);
  // The first look, at 3.5 s, has no look before it that could show a lack of CPU.
  EXPECT_EQ(lost->process, "; its process is alive and had no CPU for 19.5 s");
}

TEST_F(APeerSilence, DoesNotCountTimeInWhichTheObserverWasStopped) {
  EXPECT_FALSE(watch_for(seconds(1)));
  sleep(seconds(600));
  EXPECT_FALSE(watch_.check(now_, observer_, in_set_up_));
  EXPECT_EQ(watch_.time_left(now_, observer_), kTimeout - seconds(1) - kSleep);
  EXPECT_EQ(describe(watch_for(seconds(60)).value()),
            "sent nothing for 603.7 s, in which this task was not scheduled for 599.95 s");
}

TEST_F(APeerSilence, DoesNotCountTheObserversDelaysOnABusyMachine) {
  // The observer runs for one tenth of the time: its own 3.5 s end after 35 s.
  for (int i = 0; i < 69; ++i) {
    sleep(10 * kSleep);
    EXPECT_FALSE(watch_.check(now_, observer_, in_set_up_)) << i;
  }
  sleep(10 * kSleep);
  EXPECT_FALSE(watch_.check(now_, observer_, in_set_up_)) << "the first look";
  sleep(10 * kSleep);
  EXPECT_TRUE(watch_.check(now_, observer_, in_set_up_));
}

TEST_F(APeerSilence, DoesNotCountLongTimesBetweenSleeps) {
  sleep(kSleep);
  now_ += seconds(600);
  sleep(kSleep);
  EXPECT_FALSE(watch_.check(now_, observer_, in_set_up_));
}

TEST_F(APeerSilence, LooksAtTheProcessFourTimesPerSecondOnceThePeerIsSilent) {
  int looks = 0;
  PeerSilence watch(
      kTimeout, [&] { return ++looks == 1 ? ProcessState::kAlive : ProcessState::kStarved; }, now_,
      observer_);
  const auto end = now_ + kTimeout + seconds(10);
  while (now_ < end) {
    const nanoseconds left =
        std::clamp<nanoseconds>(watch.time_left(now_, observer_), milliseconds(1), kTimeout);
    observer_.update(now_, left);
    now_ += left;
    observer_.update(now_, nanoseconds(0));
    EXPECT_FALSE(watch.check(now_, observer_, in_set_up_));
  }
  EXPECT_EQ(looks, 41);
}

TEST(ObserverClock, ReportsHowLongTheObserverDidNotRun) {
  PeerSilence::Time now{};
  ObserverClock observer(now);
  EXPECT_EQ(observer.update(now, kSleep), nanoseconds(0));
  now += kSleep + seconds(4);
  EXPECT_EQ(observer.update(now, kSleep), seconds(4));
  now += kSleep + milliseconds(50);
  EXPECT_EQ(observer.update(now, kSleep), nanoseconds(0)) << "every machine has such delays";
  EXPECT_EQ(observer.delay(), seconds(4));
}

}  // namespace
}  // namespace syncopate
