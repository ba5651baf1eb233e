// Tests how ranks connect to a TCP ring: which connections are accepted, and the errors for missing
// connections.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "ps/net/greeting.h"
#include "strategies/cluster/outgoing_greeting.h"
#include "strategies/collective/ring_links.h"
#include "tests/strategies/cluster/threads_as_tasks.h"
#include "tests/strategies/collective/fake_membership.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

std::string error_of_ring(Membership& membership) {
  return message_if_thrown<PeerError>([&] { (void)connect_ring({.membership = &membership}); });
}

class MalformedPort : public testing::TestWithParam<std::string> {};

TEST_P(MalformedPort, EndsTheSetUpAndNamesTheTask) {
  FakeMembership membership([](const std::string&) { return GetParam(); });
  const std::string error = error_of_ring(membership);
  EXPECT_TRUE(contains(
      error, "rank 1 (host b, pid 77) gave '" + GetParam() + "' as its port, expected 1 to 65535"));
}

INSTANTIATE_TEST_SUITE_P(Of, MalformedPort,
                         testing::Values("", "syncopate-1", "0", "65536", "-1", "80 ", "0x50"));

bool is_reached(const std::string& host, const std::string& port) {
  try {
    (void)connect_to(parse_endpoint(host + ":" + port, "a test"), "the ring",
                     Deadline::after(std::chrono::milliseconds(1)));
    return true;
  } catch (const PeerError&) {
    return false;
  }
}

TEST(RingLinks, ListenOnlyAtTheAddressThatTheOthersWereTold) {
  bool is_reached_there = false;
  bool is_reached_elsewhere = false;
  FakeMembership membership(
      [&](const std::string& port) {
        is_reached_there = is_reached("127.0.0.2", port);
        is_reached_elsewhere = is_reached("127.0.0.1", port);
        return "no port";  // ends the set-up
      },
      "127.0.0.2");
  EXPECT_NE(error_of_ring(membership), "");
  EXPECT_TRUE(is_reached_there);
  EXPECT_FALSE(is_reached_elsewhere);
}

TEST(RingLinks, AcceptANonceOfAnyBytes) {
  TestRendezvous place;
  const std::string nonce = " a job\nof mine ";
  const std::vector<ClusterSpec> specs = {place.spec(0, 2, nonce), place.spec(1, 2, nonce)};
  std::vector<std::string> errors(2);
  std::vector<Joined> joined(2);
  at_once(2, [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    joined[index] = join(specs[index], quick_options());
    ASSERT_TRUE(joined[index].membership) << joined[index].usage_error << joined[index].peer_error;
    errors[index] = error_of_ring(*joined[index].membership);
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
}

// What the previous rank has sent opens no second connection.
TEST(RingLinks, LetNoReplayedGreetingIn) {
  constexpr std::uint16_t kRingHello = 0x5249;
  constexpr std::uint16_t kRingWelcome = 0x524A;
  const Deadline soon = Deadline::after(std::chrono::seconds(60));
  Listener listener(Endpoint{"127.0.0.1", 0});
  std::promise<std::string> port;
  FakeMembership membership(
      [&](const std::string& mine) {
        port.set_value(mine);
        return std::to_string(listener.port());
      },
      "127.0.0.1");
  const std::jthread other([&] {
    const Endpoint ring = parse_endpoint("127.0.0.1:" + port.get_future().get(), "a test");
    for (const std::string text : {"1 0 bulk", "1 0 small"}) {
      const auto call = [&](std::string& challenge) {
        Connection connection = connect_to(ring, "rank 0", soon);
        connection.send({kGreetingCall, ""}, soon);
        challenge = connection.receive(soon).payload;
        return connection;
      };
      std::string challenge;
      Connection previous = call(challenge);
      GreetingCaller caller(membership.nonce());
      caller.take(challenge);
      const Frame greeting{kRingHello, caller.seal(text) + text};
      std::string another;
      Connection stranger = call(another);
      EXPECT_NE(challenge, another);
      stranger.send(greeting, soon);
      EXPECT_THROW(stranger.receive(soon), PeerError) << "it is closed";
      previous.send(greeting, soon);
      EXPECT_EQ(previous.receive(soon).type, kGreetingProof);
      EXPECT_EQ(previous.receive(soon).type, kRingWelcome);
    }
    for (int channel = 0; channel < 2; ++channel) {
      std::optional<Connection> next = listener.accept(soon);
      ASSERT_TRUE(next);
      answer_greeting(*next, membership.nonce(), soon);
      next->send({kRingWelcome, ""}, soon);
    }
  });
  EXPECT_EQ(error_of_ring(membership), "");
}

// The other task accepts the connections and closes them; the verdict about its loss comes a moment
// later.
TEST(RingLinks, ReportTheVerdictInsteadOfAClosedConnection) {
  Listener listener(Endpoint{"127.0.0.1", 0});
  FakeMembership membership([&](const std::string&) { return std::to_string(listener.port()); });
  membership.verdict = "rank 1 failed: the disk is full";
  membership.polls_before_verdict = 5;
  const std::jthread other([&] {
    for (int channel = 0; channel < 2; ++channel) {
      (void)listener.accept(Deadline::after(std::chrono::seconds(10)));
    }
  });
  EXPECT_EQ(error_of_ring(membership), "rank 1 failed: the disk is full");
}

}  // namespace
}  // namespace syncopate
