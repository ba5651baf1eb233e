// Tests that a lost peer wakes the training thread, and that PeerWatch ends a process that
// continues nevertheless. A stand-in for the membership loses its peer when a test says so.
#include "worker/run/process_end.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "strategies/cluster/failure_notice.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The grace period kNever is longer than any test takes, unless PeerWatch has a bug.
constexpr seconds kNever(20);
constexpr seconds kTimeout(10);
constexpr milliseconds kSoon(20);

class FakePeers final : public Membership {
 public:
  void lose(const std::string& reason) { notice_.set(reason); }
  bool has_subscriber() const { return has_subscriber_; }
  int subscriptions() const { return subscriptions_; }

  int index() const noexcept override { return 0; }
  const std::vector<Member>& members() const noexcept override { return members_; }
  const std::string& nonce() const noexcept override { return nonce_; }
  milliseconds peer_timeout() const noexcept override { return seconds(5); }
  std::vector<std::string> exchange(const std::string& mine) override { return {mine}; }
  std::optional<std::string> failure() const override { return notice_.get(); }
  void on_failure(std::function<void(const std::string&)> callback) override {
    has_subscriber_ = callback != nullptr;
    ++subscriptions_;
    notice_.subscribe(callback);
  }
  void report_step(std::int64_t /*step*/) noexcept override {}
  std::int64_t lowest_step() const noexcept override { return -1; }
  void leave() override {}
  void fail(std::string_view /*reason*/) noexcept override {}

 private:
  std::vector<Member> members_ = std::vector<Member>(2);
  std::string nonce_;
  FailureNotice notice_;
  std::atomic<bool> has_subscriber_ = false;
  std::atomic<int> subscriptions_ = 0;
};

// A Calls object records the reasons with which its function is called.
class Calls {
 public:
  PeerWatch::Act act() {
    return [this](const std::string& reason) {
      const std::lock_guard lock(mutex_);
      reasons_.push_back(reason);
      called_.notify_all();
    };
  }
  std::vector<std::string> so_far() const {
    const std::lock_guard lock(mutex_);
    return reasons_;
  }
  // Waits for the first call; returns the reasons of the calls so far.
  std::vector<std::string> first() {
    std::unique_lock lock(mutex_);
    called_.wait_for(lock, kTimeout, [this] { return !reasons_.empty(); });
    return reasons_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable called_;
  std::vector<std::string> reasons_;
};

template <typename Condition>
bool holds_within(milliseconds timeout, const Condition& condition) {
  const auto end = Clock::now() + timeout;
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

using Reasons = std::vector<std::string>;

class APeerWatch : public testing::Test {
 protected:
  FakePeers peers_;
  Calls ends_;
  Calls wakes_;
};

TEST_F(APeerWatch, EndsTheProcessOnceAfterTheGracePeriod) {
  const PeerWatch watch(peers_, kSoon, ends_.act());
  const auto begun = Clock::now();
  peers_.lose("rank 1 is gone");
  EXPECT_EQ(ends_.first(), Reasons{"rank 1 is gone"});
  EXPECT_GE(Clock::now() - begun, kSoon);
}

TEST_F(APeerWatch, DetectsAPeerThatWasLostBeforeItsConstruction) {
  peers_.lose("rank 1 never came");
  const PeerWatch watch(peers_, kSoon, ends_.act());
  EXPECT_EQ(ends_.first(), Reasons{"rank 1 never came"});
}

TEST_F(APeerWatch, EndsNothingWhenItIsDestroyedWithinTheGrace) {
  const auto begun = Clock::now();
  {
    const PeerWatch watch(peers_, kNever, ends_.act());
    peers_.lose("rank 1 is gone");
  }
  EXPECT_LT(Clock::now() - begun, kNever / 2) << "it waits for its grace";
  EXPECT_EQ(ends_.so_far(), Reasons{});
}

TEST_F(APeerWatch, EndsNothingWithoutALostPeer) {
  { const PeerWatch watch(peers_, milliseconds(0), ends_.act()); }
  EXPECT_FALSE(peers_.has_subscriber());
  peers_.lose("rank 1 is gone");
  EXPECT_EQ(ends_.so_far(), Reasons{});
}

TEST_F(APeerWatch, WaitsForTheEndThatItHasBegunWhenItIsDestroyed) {
  std::promise<void> begun;
  std::atomic<bool> destroyed = false;
  std::atomic<bool> overtaken = false;
  std::optional<PeerWatch> watch;
  watch.emplace(peers_, milliseconds(0), [&](const std::string&) {
    begun.set_value();
    overtaken = holds_within(milliseconds(100), [&] { return destroyed.load(); });
  });
  peers_.lose("rank 1 is gone");
  ASSERT_EQ(begun.get_future().wait_for(kTimeout), std::future_status::ready);
  watch.reset();
  destroyed = true;
  EXPECT_FALSE(overtaken) << "what it refers to was gone while it ran";
}

TEST_F(APeerWatch, WakesTheWaitingThreadAndEndsTheProcessAfterTheGracePeriod) {
  PeerWatch watch(peers_, kSoon, ends_.act());
  const PeerWatch::Waker waker(watch, wakes_.act());
  peers_.lose("rank 1 is gone");
  EXPECT_EQ(wakes_.so_far(), Reasons{"rank 1 is gone"}) << "at once";
  EXPECT_EQ(ends_.first(), Reasons{"rank 1 is gone"});
  EXPECT_EQ(wakes_.so_far().size(), 1U);
}

TEST_F(APeerWatch, WakesAtOnceWhenThePeerWasLostBefore) {
  PeerWatch watch(peers_, kNever, ends_.act());
  peers_.lose("rank 1 is gone");
  const PeerWatch::Waker waker(watch, wakes_.act());
  EXPECT_EQ(wakes_.so_far(), Reasons{"rank 1 is gone"});
}

TEST_F(APeerWatch, KeepsItsGracePeriodForALateWaker) {
  PeerWatch watch(peers_, kSoon, ends_.act());
  peers_.lose("rank 1 is gone");
  { const PeerWatch::Waker waker(watch, wakes_.act()); }
  EXPECT_EQ(ends_.first(), Reasons{"rank 1 is gone"});
}

TEST_F(APeerWatch, EndsTheProcessAfterItsWakerWasDestroyed) {
  PeerWatch watch(peers_, kSoon, ends_.act());
  { const PeerWatch::Waker waker(watch, wakes_.act()); }
  peers_.lose("rank 1 is gone");
  EXPECT_EQ(ends_.first(), Reasons{"rank 1 is gone"});
  EXPECT_EQ(wakes_.so_far(), Reasons{});
}

TEST_F(APeerWatch, WakesOnceThoughTheWakerEndsAfterwards) {
  PeerWatch watch(peers_, kNever, ends_.act());
  {
    const PeerWatch::Waker waker(watch, wakes_.act());
    peers_.lose("rank 1 is gone");
  }
  EXPECT_EQ(wakes_.so_far(), Reasons{"rank 1 is gone"});
  EXPECT_EQ(ends_.so_far(), Reasons{}) << "the grace is not over";
}

// The object that the waker wakes is destroyed right after the waker, so no call may still be
// running then.
TEST_F(APeerWatch, LetsAWakerEndOnlyWhenItsCallHasReturned) {
  PeerWatch watch(peers_, kNever, ends_.act());
  std::promise<void> entered;
  std::atomic<bool> destroyed = false;
  std::atomic<bool> overtaken = false;
  std::optional<PeerWatch::Waker> waker;
  waker.emplace(watch, [&](const std::string&) {
    const int subscriptions = peers_.subscriptions();
    entered.set_value();
    // The call waits until the waker's destructor runs, and then for as long as the destructor
    // might need to return.
    holds_within(kTimeout, [&] { return peers_.subscriptions() > subscriptions; });
    overtaken = holds_within(milliseconds(100), [&] { return destroyed.load(); });
  });
  const std::jthread membership([&] { peers_.lose("rank 1 is gone"); });
  ASSERT_EQ(entered.get_future().wait_for(kTimeout), std::future_status::ready);
  waker.reset();
  destroyed = true;
  EXPECT_FALSE(overtaken);
}

TEST_F(APeerWatch, CanBeDestroyedWhileAPeerIsBeingLost) {
  for (int round = 0; round < 200; ++round) {
    FakePeers peers;
    std::atomic<int> woken = 0;
    std::atomic<bool> begun = false;
    std::jthread membership;
    const auto round_begun = Clock::now();
    {
      PeerWatch watch(peers, kNever, ends_.act());
      const PeerWatch::Waker waker(watch, [&](const std::string&) { ++woken; });
      membership = std::jthread([&] {
        begun = true;
        peers.lose("rank 1 is gone");
      });
      holds_within(kTimeout, [&] { return begun.load(); });
    }
    membership.join();
    ASSERT_LT(Clock::now() - round_begun, kNever / 2) << "it waits for its grace";
    EXPECT_LE(woken, 1);
    EXPECT_FALSE(peers.has_subscriber());
  }
  EXPECT_EQ(ends_.so_far(), Reasons{});
}

}  // namespace
}  // namespace syncopate
