#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "strategies/cluster/handshake.h"
#include "tests/strategies/cluster/threads_as_tasks.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Joins all tasks at the same time and returns the results in the order of `specs`.
std::vector<Joined> join_all(const std::vector<ClusterSpec>& specs,
                             const std::vector<MembershipOptions>& options) {
  std::vector<Joined> joined(specs.size());
  at_once(static_cast<int>(specs.size()), [&](int i) {
    const auto place = static_cast<std::size_t>(i);
    joined[place] = join(specs[place], options[place]);
  });
  return joined;
}

std::vector<Joined> join_all(const std::vector<ClusterSpec>& specs) {
  return join_all(specs, std::vector(specs.size(), quick_options()));
}

class RendezvousOf : public testing::TestWithParam<int> {};

TEST_P(RendezvousOf, SendsTheSameRosterToAllTasks) {
  const int world_size = GetParam();
  TestRendezvous place;
  std::vector<ClusterSpec> specs;
  std::vector<MembershipOptions> options;
  for (int i = 0; i < world_size; ++i) {
    specs.push_back(place.spec(i, world_size, ""));
    options.push_back(quick_options());
    options.back().num_replicas = i + 1;
  }
  const std::vector<Joined> joined = join_all(specs, options);
  for (int i = 0; i < world_size; ++i) {
    const Joined& task = joined[static_cast<std::size_t>(i)];
    ASSERT_TRUE(task.membership) << task.usage_error << task.peer_error;
    EXPECT_EQ(task.membership->index(), i);
    EXPECT_EQ(task.membership->nonce().size(), 64U);
    EXPECT_EQ(task.membership->nonce(), joined[0].membership->nonce());
    EXPECT_FALSE(task.membership->failure().has_value());
    const std::vector<Member>& members = task.membership->members();
    ASSERT_EQ(static_cast<int>(members.size()), world_size);
    for (int j = 0; j < world_size; ++j) {
      const Member& member = members[static_cast<std::size_t>(j)];
      EXPECT_EQ(member.index, j);
      EXPECT_EQ(member.num_replicas, j + 1);
      EXPECT_EQ(member.first_replica, j * (j + 1) / 2);
      EXPECT_EQ(member.address, "127.0.0.1");
      EXPECT_EQ(member.pid, getpid());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, RendezvousOf, testing::Values(1, 2, 3, 4));

TEST(RendezvousTest, GivesEachRunANonceOfItsOwn) {
  std::vector<std::string> nonces;
  for (int run = 0; run < 2; ++run) {
    TestRendezvous place;
    const std::vector<Joined> joined = join_all({place.spec(0, 2, "job"), place.spec(1, 2, "job")});
    for (const Joined& task : joined) ASSERT_TRUE(task.membership) << task.usage_error;
    EXPECT_EQ(joined[0].membership->nonce(), joined[1].membership->nonce());
    nonces.push_back(joined[0].membership->nonce());
  }
  EXPECT_NE(nonces[0], nonces[1]);
  EXPECT_NE(run_nonce("job", "salt"), run_nonce("another", "salt"));
}

// What a task has sent is of no use on another connection, nor is it as a greeting of another rank.
TEST(RendezvousTest, LetsNoReplayedGreetingIn) {
  TestRendezvous place;
  const ClusterSpec spec = place.spec(0, 3);
  const Deadline soon = Deadline::after(seconds(60));
  Joined rank_zero;
  {
    const std::jthread waiting([&] { rank_zero = join(spec, quick_options()); });
    const Hello hello{.index = 2, .world_size = 3, .host = "b", .pid = 77};
    Connection task = connect_to(place.endpoint(), "rank 0", soon);
    task.send({kGreetingCall, ""}, soon);
    GreetingCaller caller("job");
    caller.take(task.receive(soon).payload);
    const std::string text = encode(hello).payload;
    const Frame sent{kHello, caller.seal(text) + text};
    Hello other = hello;
    other.index = 1;
    for (const Frame& replayed : {sent, Frame{kHello, caller.seal(text) + encode(other).payload}}) {
      Connection stranger = connect_to(place.endpoint(), "rank 0", soon);
      stranger.send({kGreetingCall, ""}, soon);
      EXPECT_NE(stranger.receive(soon).payload, "");
      stranger.send(replayed, soon);
      EXPECT_EQ(stranger.receive(soon).type, kRejected);
    }
    task.send(sent, soon);
    const Frame proof = task.receive(soon);
    EXPECT_EQ(proof.type, kGreetingProof);
    EXPECT_TRUE(caller.is_listeners(proof.payload));
    EXPECT_EQ(task.receive(soon).type, kWelcome);
  }
  EXPECT_TRUE(contains(rank_zero.peer_error, "rank 2 (host b, pid 77): its connection closed"));
}

// A program that does not know the nonce cannot play rank 0, nor make a task tell it the nonce.
TEST(RendezvousTest, AcceptsNoRankZeroWithoutTheNonce) {
  TestRendezvous place;
  const std::string nonce = "a nonce that never travels";
  const ClusterSpec spec = place.spec(1, 2, nonce);
  const Deadline soon = Deadline::after(seconds(60));
  Joined joined;
  {
    const std::jthread calling([&] { joined = join(spec, quick_options()); });
    std::optional<Connection> caller = place.take_listener().accept(soon);
    ASSERT_TRUE(caller);
    EXPECT_EQ(caller->receive(soon).type, kGreetingCall);
    const GreetingListener listener("guessed");
    caller->send({kGreetingChallenge, listener.challenge()}, soon);
    const std::string greeting = caller->receive(soon).payload;
    EXPECT_FALSE(contains(greeting, nonce));
    // The caller's own proof, sent back, is not the listener's.
    caller->send({kGreetingProof, greeting.substr(kChallengeBytes, kProofBytes)}, soon);
    EXPECT_THROW(caller->receive(soon), PeerError);
  }
  EXPECT_TRUE(contains(joined.peer_error, "did not prove that it knows this job's nonce",
                       "give all tasks the same SYNCOPATE_NONCE"));
}

// Frames of another version of the protocol differ in the fifth byte.
std::string with_version(std::string frame, char version) {
  frame[4] = version;
  return frame;
}

TEST(RendezvousTest, TellsATaskOfAnotherVersionItsOwn) {
  TestRendezvous place;
  const ClusterSpec spec = place.spec(0, 2);
  const Deadline soon = Deadline::after(seconds(60));
  MembershipOptions options = quick_options();
  options.rendezvous_timeout = seconds(3);
  testing::internal::CaptureStderr();
  {
    const std::jthread waiting([&] { (void)join(spec, options); });
    Connection old = connect_to(place.endpoint(), "rank 0", soon);
    const std::string hello = with_version(encode_frame({kHello, "{}"}), 1);
    ASSERT_EQ(::write(old.descriptor(), hello.data(), hello.size()), std::ssize(hello));
    EXPECT_NO_THROW(old.receive(soon)) << "a frame whose head has this version";
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(lines, "it uses protocol version 1, expected version 2"));
}

TEST(RendezvousTest, NamesARankZeroOfAnotherVersion) {
  TestRendezvous place;
  const Deadline soon = Deadline::after(seconds(60));
  for (const bool answers : {true, false}) {
    Joined joined;
    TestRendezvous elsewhere;
    const ClusterSpec other = elsewhere.spec(1, 2);
    {
      const std::jthread calling([&] { joined = join(other, quick_options()); });
      std::optional<Connection> caller = elsewhere.take_listener().accept(soon);
      ASSERT_TRUE(caller);
      EXPECT_EQ(caller->receive(soon).type, kGreetingCall);
      const std::string refusal = with_version(encode_frame({kRejected, "{}"}), 1);
      if (answers) {
        ASSERT_EQ(::write(caller->descriptor(), refusal.data(), refusal.size()),
                  std::ssize(refusal));
      }
    }
    const std::string line = answers ? "it uses protocol version 1, expected version 2"
                                     : "closed before it answered the greeting of protocol version "
                                       "2; is it a task of this job, and the same version of";
    EXPECT_TRUE(contains(joined.peer_error, line));
  }
}

TEST(RendezvousTest, UsesTheLargestGivenPeerTimeout) {
  TestRendezvous place;
  std::vector<MembershipOptions> options(3, quick_options());
  options[0].peer_timeout = milliseconds(0);
  options[1].peer_timeout = seconds(4);
  options[2].peer_timeout = seconds(3);
  for (const Joined& task :
       join_all({place.spec(0, 3), place.spec(1, 3), place.spec(2, 3)}, options)) {
    ASSERT_TRUE(task.membership);
    EXPECT_EQ(task.membership->peer_timeout(), seconds(4));
  }
}

TEST(RendezvousTest, HasAShorterPeerTimeoutOnOneMachineThanOnSeveral) {
  const Hello here{.host = "a", .boot_id = "1"};
  const Hello there{.index = 1, .host = "b", .boot_id = "2"};
  EXPECT_EQ(make_roster({here, here}, {"", ""}).peer_timeout, seconds(5));
  EXPECT_EQ(make_roster({here, there}, {"", ""}).peer_timeout, seconds(15));
}

// Expects that rank 0 and all connected tasks throw an error with this line.
void expect_usage_error(const std::vector<Joined>& joined, const std::string& line) {
  for (std::size_t i = 0; i < joined.size(); ++i) {
    EXPECT_FALSE(joined[i].membership) << i;
    EXPECT_EQ(joined[i].usage_error, joined[0].usage_error) << i << joined[i].peer_error;
  }
  EXPECT_TRUE(contains(joined[0].usage_error, line));
}

TEST(RendezvousTest, RefusesAnotherWorldSizeAndNamesBoth) {
  TestRendezvous place;
  expect_usage_error(join_all({place.spec(0, 4), place.spec(2, 3)}),
                     "rank 2 has a world of 3 tasks, rank 0 a world of 4");
}

TEST(RendezvousTest, RefusesTwoTasksOfOneRank) {
  TestRendezvous place;
  expect_usage_error(join_all({place.spec(0, 3), place.spec(1, 3), place.spec(1, 3)}),
                     "two tasks have rank 1: pid " + std::to_string(getpid()));
}

TEST(RendezvousTest, RefusesARankOutOfRange) {
  TestRendezvous place;
  expect_usage_error(join_all({place.spec(0, 3), place.spec(3, 3)}),
                     "is not of this world: its 3 tasks are rank 0 to rank 2");
}

// Makes a Slurm task that reports its node. Slurm's variables place ranks 0 and 1 on n1 and n2.
ClusterSpec placed(ClusterSpec spec, const char* node) {
  spec.source = "Slurm";
  spec.node = node;
  spec.worker_places = {{"n1", 0}, {"n2", 0}};
  return spec;
}

TEST(RendezvousTest, RefusesATaskOnAnotherNodeThanItsRankWasPlaced) {
  TestRendezvous place;
  expect_usage_error(
      join_all({placed(place.spec(0, 2), "n1"), placed(place.spec(1, 2), "n3")}),
      "rank 1 runs on node n3, local rank 0, but by Slurm's variables it is on node n2, local rank "
      "0; start the tasks with srun --distribution=block");
}

TEST(RendezvousTest, AcceptsTasksOnTheNodesWhereTheyWerePlaced) {
  TestRendezvous place;
  for (const Joined& task :
       join_all({placed(place.spec(0, 2), "n1"), placed(place.spec(1, 2), "n2")})) {
    EXPECT_TRUE(task.membership) << task.usage_error;
  }
}

TEST(RendezvousTest, RefusesADifferenceInAMandatoryAgreement) {
  TestRendezvous place;
  std::vector<MembershipOptions> options(2, quick_options());
  options[0].agreements = {{"--seed", "1", true}, {"--model", "mlp", true}};
  options[1].agreements = {{"--seed", "2", true}, {"--model", "mlp", true}};
  expect_usage_error(join_all({place.spec(0, 2), place.spec(1, 2)}, options),
                     "rank 1 has --seed 2, rank 0 has --seed 1");
}

TEST(RendezvousTest, AcceptsADifferenceInAnOptionalAgreement) {
  TestRendezvous place;
  std::vector<MembershipOptions> options(2, quick_options());
  options[0].agreements = {{"the instruction set", "v3", false}};
  options[1].agreements = {{"the instruction set", "v4", false}};
  for (const Joined& task : join_all({place.spec(0, 2), place.spec(1, 2)}, options)) {
    EXPECT_TRUE(task.membership) << task.usage_error;
  }
}

TEST(RendezvousTest, NamesTheRanksThatDidNotJoin) {
  TestRendezvous place;
  std::vector<MembershipOptions> options(2, quick_options());
  options[0].rendezvous_timeout = milliseconds(400);
  const std::vector<Joined> joined = join_all({place.spec(0, 4), place.spec(1, 4)}, options);
  EXPECT_TRUE(contains(joined[0].peer_error, "2 of 4 tasks came to " + to_string(place.endpoint()) +
                                                 " within 0.4 s; missing: rank 2, rank 3;"));
  EXPECT_EQ(joined[1].peer_error, joined[0].peer_error);
}

TEST(RendezvousTest, NamesATaskThatFailsBeforeTheOthersHaveJoined) {
  TestRendezvous place;
  const ClusterSpec spec = place.spec(0, 3);
  Joined rank_zero;
  {
    const std::jthread waiting([&] { rank_zero = join(spec, quick_options()); });
    Connection closing =
        connect_to(place.endpoint(), "rank 0", Deadline::after(quick_options().rendezvous_timeout));
    const Hello hello{.index = 2, .world_size = 3, .host = "b", .pid = 77};
    EXPECT_EQ(greet_rank_zero(closing, hello, Deadline::after(seconds(5))).type, kWelcome);
  }
  EXPECT_EQ(rank_zero.peer_error,
            "rank 2 (host b, pid 77): its connection closed before all 3 tasks had come to " +
                to_string(place.endpoint()));
}

TEST(RendezvousTest, RejectsConnectionsThatAreNotOfTheJob) {
  TestRendezvous place;
  const Deadline soon = Deadline::after(seconds(10));
  // Three foreign connections reach the rendezvous: one closes at once, one sends another protocol,
  // one sends nothing.
  const Connection silent = connect_to(place.endpoint(), "rank 0", soon);
  { const Connection gone = connect_to(place.endpoint(), "rank 0", soon); }
  const Connection browser = connect_to(place.endpoint(), "rank 0", soon);
  ASSERT_EQ(::write(browser.descriptor(), "GET / HTTP/1.1\r\n", 16), 16);

  const ClusterSpec first = place.spec(0, 2);
  Joined rank_zero;
  Joined stale;
  Joined rank_one;
  {
    const std::jthread waiting([&] { rank_zero = join(first, quick_options()); });
    stale = join(place.spec(1, 2, "an earlier job"), quick_options());
    rank_one = join(place.spec(1, 2), quick_options());
  }
  EXPECT_TRUE(rank_zero.membership) << rank_zero.usage_error << rank_zero.peer_error;
  EXPECT_TRUE(rank_one.membership) << rank_one.usage_error << rank_one.peer_error;
  EXPECT_FALSE(stale.membership);
  EXPECT_TRUE(contains(stale.usage_error, "belongs to another job"))
      << stale.usage_error << stale.peer_error;
  EXPECT_TRUE(contains(stale.usage_error,
                       "different nonces, or one has none; give all tasks the same "
                       "SYNCOPATE_NONCE"));
}

TEST(RendezvousTest, AcceptsTheTasksOfALargeJobThatConnectAtOnce) {
  constexpr int kTasks = 301;
  TestRendezvous place;
  const Deadline soon = Deadline::after(seconds(60));
  std::vector<Connection> others;
  std::vector<OutgoingGreeting> greetings;
  for (int index = 1; index < kTasks; ++index) {
    others.push_back(connect_to(place.endpoint(), "rank 0", soon));
    greetings.emplace_back("job", encode(Hello{.index = index, .world_size = kTasks, .host = "b"}),
                           kRejected);
    OutgoingGreeting::begin(others.back(), soon);
  }
  MembershipOptions options = quick_options();
  options.peer_timeout = seconds(60);
  const ClusterSpec spec = place.spec(0, kTasks);
  Joined rank_zero;
  const std::jthread waiting([&] { rank_zero = join(spec, options); });
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(greetings[i].receive(others[i], soon).type, kWelcome);
  }
  for (Connection& other : others) {
    EXPECT_EQ(decode_roster(other.receive(soon)).members.size(), 301U);
  }
}

TEST(RendezvousTest, NamesARankZeroThatNeverStarted) {
  TestRendezvous place;
  { const Listener closed = place.take_listener(); }
  MembershipOptions options = quick_options();
  options.rendezvous_timeout = milliseconds(200);
  const Joined joined = join(place.spec(1, 2), options);
  EXPECT_TRUE(contains(joined.peer_error, "rank 0 could not be reached at " +
                                              to_string(place.endpoint()) +
                                              " within 0.2 s: Connection"));
}

TEST(RendezvousTest, NamesARankZeroThatDoesNotAnswer) {
  TestRendezvous place;  // it listens but does not accept
  MembershipOptions options = quick_options();
  options.rendezvous_timeout = milliseconds(200);
  const Joined joined = join(place.spec(1, 2), options);
  EXPECT_EQ(joined.peer_error, "rank 0 at " + to_string(place.endpoint()) +
                                   ", which rank 1 called: it did not answer within 0.2 s");
}

TEST(RendezvousTest, NamesARankZeroThatFailsBeforeItSendsTheRoster) {
  TestRendezvous place;
  const ClusterSpec spec = place.spec(1, 2);
  Joined joined;
  {
    const std::jthread calling([&] { joined = join(spec, quick_options()); });
    const Deadline soon = Deadline::after(seconds(10));
    std::optional<Connection> caller = place.take_listener().accept(soon);
    ASSERT_TRUE(caller);
    EXPECT_EQ(answer_greeting(*caller, "job", soon).type, kHello);
    caller->send(encode(Welcome{seconds(5), "a", 66}), soon);
  }
  EXPECT_EQ(joined.peer_error, "rank 0 (host a, pid 66): its connection closed");
}

TEST(RendezvousTest, NamesARendezvousPortThatIsInUse) {
  const Listener other(Endpoint{"127.0.0.1", 0});
  ClusterSpec spec;
  spec.world_size = 2;
  spec.rendezvous.endpoint = Endpoint{"127.0.0.1", other.port()};
  EXPECT_TRUE(contains(join(spec, quick_options()).usage_error, "is in use"));
}

TEST(RendezvousTest, RefusesAClusterWithoutARendezvous) {
  ClusterSpec spec;
  spec.world_size = 2;
  spec.index = 1;
  EXPECT_TRUE(contains(join(spec, quick_options()).usage_error, "--rendezvous HOST:PORT"));
}

}  // namespace
}  // namespace syncopate
