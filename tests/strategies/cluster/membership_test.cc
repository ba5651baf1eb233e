#include "strategies/cluster/membership.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <regex>
#include <string>
#include <vector>

#include "strategies/cluster/handshake.h"
#include "tests/strategies/cluster/threads_as_tasks.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Tasks = std::vector<std::unique_ptr<Membership>>;

std::string rank(int index) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return describe(index, host.data(), getpid());
}

// Expects that every remaining task reports this verdict about the lost task.
void expect_verdict(const Tasks& tasks, const std::string& line) {
  for (const auto& task : tasks) {
    if (task == nullptr) continue;
    EXPECT_TRUE(eventually([&] { return task->failure().has_value(); })) << task->index();
    EXPECT_EQ(task->failure().value_or("nothing"), line) << task->index();
  }
}

// Like expect_verdict(), for a silence of `shortest` or longer: a busy machine runs the tasks late.
// `who` and `end`: how the verdict begins and ends.
void expect_silence(const Tasks& tasks, const std::string& who, milliseconds shortest,
                    const std::string& end) {
  const std::regex line(
      "(.*) was lost: it sent nothing for ([0-9.]+) s, in which this task was not scheduled for "
      "([0-9.]+) s(.*)");
  for (const auto& task : tasks) {
    EXPECT_TRUE(eventually([&] { return task->failure().has_value(); })) << task->index();
    const std::string verdict = task->failure().value_or("nothing");
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(verdict, parts, line)) << verdict;
    EXPECT_EQ(parts[1], who);
    constexpr double kRounded = 0.01;
    EXPECT_GE(std::stod(parts[2]) - std::stod(parts[3]),
              std::chrono::duration<double>(shortest).count() - kRounded)
        << verdict;
    EXPECT_EQ(parts[4], end);
  }
}

TEST(Membership, ExchangesAnyBytesInRankOrder) {
  const Tasks tasks = meet(3);
  const std::vector<std::string> texts = {std::string("a\0\n", 3), "", std::string(3U << 20U, 'c')};
  at_once(3, [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    EXPECT_EQ(tasks[index]->exchange(texts[index]), texts);
    for (int round = 0; round < 20; ++round) {
      const std::string mine = std::to_string(round) + "/" + std::to_string(i);
      EXPECT_EQ(tasks[index]->exchange(mine)[2], std::to_string(round) + "/2");
    }
  });
}

TEST(Membership, TellsEveryTaskTheLowestStep) {
  const Tasks tasks = meet(3);
  const auto all_say = [&](std::int64_t step) {
    return eventually([&] {
      return std::ranges::all_of(tasks,
                                 [&](const auto& task) { return task->lowest_step() == step; });
    });
  };
  tasks[0]->report_step(7);
  tasks[1]->report_step(9);
  tasks[2]->report_step(5);
  EXPECT_TRUE(all_say(5));
  tasks[2]->report_step(8);
  EXPECT_TRUE(all_say(7));
}

TEST(Membership, NamesTheTaskThatIsMissingFromAnExchange) {
  TestRendezvous place;
  const std::vector<ClusterSpec> specs = {place.spec(0, 3), place.spec(1, 3), place.spec(2, 3)};
  MembershipOptions options = quick_options();
  options.exchange_timeout = milliseconds(600);
  Tasks tasks(3);
  at_once(3, [&](int i) {
    tasks[static_cast<std::size_t>(i)] = join_cluster(specs[static_cast<std::size_t>(i)], options);
  });
  const std::string line =
      "not every task sent its part of the set-up within 0.6 s; missing: " + rank(2);
  std::future<std::string> other = std::async(std::launch::async, [&] {
    return message_of<PeerError>([&] { tasks[1]->exchange("one"); });
  });
  EXPECT_EQ(message_of<PeerError>([&] { tasks[0]->exchange("zero"); }), line);
  tasks[0]->fail(line);
  EXPECT_EQ(other.get(), rank(0) + " failed: " + line);
}

TEST(Membership, WaitsInAnExchangeLongerThanTheRendezvousTimeout) {
  TestRendezvous place;
  const std::vector<ClusterSpec> specs = {place.spec(0, 2), place.spec(1, 2)};
  MembershipOptions options = quick_options();
  options.rendezvous_timeout = seconds(2);
  Tasks tasks(2);
  at_once(2, [&](int i) {
    tasks[static_cast<std::size_t>(i)] = join_cluster(specs[static_cast<std::size_t>(i)], options);
  });
  std::future<std::vector<std::string>> early =
      std::async(std::launch::async, [&] { return tasks[0]->exchange("zero"); });
  // Task 1 is slow to join the exchange, as if it read its data.
  EXPECT_NE(early.wait_for(milliseconds(2500)), std::future_status::ready);
  const std::vector<std::string> texts = {"zero", "one"};
  EXPECT_EQ(tasks[1]->exchange("one"), texts);
  EXPECT_EQ(early.get(), texts);
}

TEST(Membership, LeavesWhenAllTasksLeave) {
  Tasks tasks = meet(4);
  std::atomic<int> done = 0;
  at_once(4, [&](int i) {
    ++done;
    tasks[static_cast<std::size_t>(i)]->leave();
    EXPECT_EQ(done, 4);
    tasks[static_cast<std::size_t>(i)].reset();
  });
}

TEST(Membership, IgnoresClosedConnectionsAfterLeaving) {
  Tasks tasks = meet(3);
  at_once(3, [&](int i) { tasks[static_cast<std::size_t>(i)]->leave(); });
  tasks[0].reset();
  tasks[2].reset();
  EXPECT_FALSE(tasks[1]->failure().has_value());
}

class LostTask : public testing::TestWithParam<int> {};

TEST_P(LostTask, IsNamedByAllOthersWithTheLastStep) {
  const auto lost = static_cast<std::size_t>(GetParam());
  Tasks tasks = meet(3);
  tasks[lost].reset();
  expect_verdict(tasks,
                 rank(GetParam()) +
                     " was lost: its connection closed; its last message came before its first "
                     "step");
}

INSTANTIATE_TEST_SUITE_P(OfRank, LostTask, testing::Values(0, 1, 2));

// A task that joins the job at the level of messages; the test decides which messages it sends
// after that.
Connection fake_task(const Endpoint& endpoint, int index, int world_size) {
  const Deadline soon = Deadline::after(seconds(10));
  Connection connection = connect_to(endpoint, "rank 0", soon);
  const Hello hello{.index = index, .world_size = world_size, .host = "b", .pid = 77};
  if (greet_rank_zero(connection, hello, soon).type == kRoster) return connection;
  while (connection.receive(soon).type != kRoster) {
  }
  return connection;
}

class JobWithAFakeTask : public testing::Test {
 protected:
  // In this fixture ranks 0 and 1 are real tasks, and rank 2 is `fake_`.
  void SetUp() override {
    TestRendezvous place;
    const std::vector<ClusterSpec> specs = {place.spec(0, 3), place.spec(1, 3)};
    MembershipOptions options = quick_options();
    options.peer_timeout = milliseconds(2000);
    at_once(3, [&](int i) {
      if (i == 2) {
        fake_ = fake_task(place.endpoint(), 2, 3);
      } else {
        const auto index = static_cast<std::size_t>(i);
        tasks_[index] = join(specs[index], options).membership;
      }
    });
    ASSERT_TRUE(tasks_[0] && tasks_[1]);
  }

  Connection fake_;
  Tasks tasks_{2};
};

// The verdict contains how long the task was silent: more than 70 % of the peer timeout of 2 s.
// peer_silence_test.cc checks the timeouts under a fake clock.
TEST_F(JobWithAFakeTask, NamesASilentTaskWithinThePeerTimeout) {
  fake_.send({kHeartbeat, "120"}, Deadline::after(seconds(10)));
  expect_silence(tasks_, "rank 2 (host b, pid 77)", milliseconds(1400),
                 "; its last message came at step 120");
}

TEST_F(JobWithAFakeTask, SendsTheVerdictToTheSilentTaskToo) {
  // Before the first step, the timeout is three times as long.
  expect_silence(tasks_, "rank 2 (host b, pid 77)", milliseconds(4200),
                 "; its last message came before its first step");
  Frame frame;
  while (frame.type != kVerdict) frame = fake_.receive(Deadline::after(seconds(60)));
  EXPECT_EQ(frame.payload, tasks_[0]->failure());
}

TEST_F(JobWithAFakeTask, EndsWhenATaskSendsMalformedBytes) {
  ASSERT_EQ(::write(fake_.descriptor(), "nonsense", 8), 8);
  for (const auto& task : tasks_) {
    EXPECT_TRUE(eventually([&] { return task->failure().has_value(); }));
    EXPECT_TRUE(
        contains(*task->failure(), "rank 2 (host b, pid 77) was lost: it uses another protocol"));
  }
}

TEST(Membership, NamesASilentRankZero) {
  TestRendezvous place;
  Listener listener = place.take_listener();
  MembershipOptions options = quick_options();
  Joined joined;
  Connection rank_zero;
  {
    ClusterSpec spec = place.spec(1, 2);
    const std::jthread joining([&] { joined = join(spec, options); });
    const Deadline soon = Deadline::after(seconds(10));
    rank_zero = *listener.accept(soon);
    const Hello caller = decode_hello(answer_greeting(rank_zero, "job", soon));
    const Hello own{.nonce = "job", .world_size = 2, .host = "a"};
    Roster roster = make_roster({own, caller}, {"127.0.0.1", "127.0.0.1"});
    roster.peer_timeout = milliseconds(500);
    rank_zero.send(encode(roster), soon);
  }
  ASSERT_TRUE(joined.membership) << joined.peer_error;
  Tasks tasks;
  tasks.push_back(std::move(joined.membership));
  expect_silence(tasks, "rank 0 (host a, pid 0)", milliseconds(1050),
                 "; its last message came before its first step");
}

TEST(Membership, StaysAliveByHeartbeatsAlone) {
  TestRendezvous place;
  const std::vector<ClusterSpec> specs = {place.spec(0, 2), place.spec(1, 2)};
  MembershipOptions options = quick_options();
  options.peer_timeout = milliseconds(2000);
  Tasks tasks(2);
  at_once(2, [&](int i) {
    tasks[static_cast<std::size_t>(i)] = join_cluster(specs[static_cast<std::size_t>(i)], options);
  });
  // The test waits for three times the longest allowed silence of 1.4 s. Heartbeats come every
  // 0.2 s.
  EXPECT_FALSE(
      eventually([&] { return tasks[0]->failure() || tasks[1]->failure(); }, milliseconds(4200)));
}

class FailingTask : public testing::TestWithParam<int> {};

TEST_P(FailingTask, SendsItsReasonToAllOthers) {
  const auto failing = static_cast<std::size_t>(GetParam());
  Tasks tasks = meet(3);
  tasks[failing]->fail("the disk is full:\n/data");
  tasks[failing].reset();
  expect_verdict(tasks, rank(GetParam()) + " failed: the disk is full: /data");
}

INSTANTIATE_TEST_SUITE_P(OfRank, FailingTask, testing::Values(0, 1, 2));

TEST(Membership, KeepsTheFirstVerdict) {
  Tasks tasks = meet(3);
  tasks[2]->fail("first");
  EXPECT_TRUE(eventually([&] { return tasks[1]->failure().has_value(); }));
  tasks[1]->fail("second");
  tasks[1].reset();
  EXPECT_EQ(tasks[0]->failure(), rank(2) + " failed: first");
}

TEST(Membership, CallsTheSubscriberOnceAndALaterOneImmediately) {
  Tasks tasks = meet(2);
  std::promise<std::string> failure;
  tasks[0]->on_failure([&](const std::string& reason) { failure.set_value(reason); });
  tasks[1].reset();
  std::future<std::string> reason = failure.get_future();
  ASSERT_EQ(reason.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(reason.get(), tasks[0]->failure());

  std::string late;
  tasks[0]->on_failure([&](const std::string& again) { late = again; });
  EXPECT_EQ(late, tasks[0]->failure());
}

TEST(Membership, DoesNotCallASubscriberThatHasUnsubscribed) {
  Tasks tasks = meet(2);
  std::atomic<bool> called = false;
  tasks[0]->on_failure([&](const std::string&) { called = true; });
  tasks[0]->on_failure({});
  tasks[1].reset();
  EXPECT_TRUE(eventually([&] { return tasks[0]->failure().has_value(); }));
  tasks[0].reset();
  EXPECT_FALSE(called);
}

TEST(Membership, WakesTasksThatWaitForALostTask) {
  Tasks tasks = meet(3);
  std::future<std::string> exchanging = std::async(std::launch::async, [&] {
    return message_of<PeerError>([&] { tasks[0]->exchange("mine"); });
  });
  std::future<std::string> leaving = std::async(
      std::launch::async, [&] { return message_of<PeerError>([&] { tasks[1]->leave(); }); });
  tasks[2].reset();
  const std::string line =
      rank(2) + " was lost: its connection closed; its last message came before its first step";
  EXPECT_EQ(exchanging.get(), line);
  EXPECT_EQ(leaving.get(), line);
}

TEST(Membership, ExplainsABrokenConnectionByTheVerdictIfThereIsOne) {
  Tasks tasks = meet(2);
  EXPECT_EQ(verdict_or(nullptr, "its connection closed"), "its connection closed");
  EXPECT_EQ(verdict_or(tasks[0].get(), "its connection closed"), "its connection closed");
  tasks[1]->fail("the disk is full");
  EXPECT_EQ(verdict_or(tasks[0].get(), "its connection closed"),
            rank(1) + " failed: the disk is full");
}

TEST(Membership, OfOneTaskNeedsNoOtherTask) {
  const std::unique_ptr<Membership> alone = join_cluster({}, {.num_replicas = 2});
  ASSERT_EQ(alone->members().size(), 1U);
  EXPECT_EQ(alone->members()[0].num_replicas, 2);
  EXPECT_EQ(alone->exchange("mine"), std::vector<std::string>{"mine"});
  alone->leave();
  EXPECT_FALSE(alone->failure().has_value());
}

}  // namespace
}  // namespace syncopate
