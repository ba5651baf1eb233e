#include "strategies/cluster/pending_connections.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "strategies/cluster/outgoing_greeting.h"
#include "tests/support/file_limit.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline soon() { return Deadline::after(seconds(10)); }

// A listening socket with connections in its backlog, which it has not accepted.
class PendingConnectionsTest : public testing::Test {
 protected:
  Connection call() const { return connect_to(endpoint_, "the listener", soon()); }
  void call_silently(int count) {
    for (int i = 0; i < count; ++i) silent_.push_back(call());
  }
  PendingConnections take(milliseconds timeout) {
    return {std::move(listener_), "job", 100, timeout};
  }

  // Returns a connection that has called; it completes its greeting during receive_one().
  Connection call_with(const std::string& text, std::uint16_t type = 1) {
    Connection connection = call();
    OutgoingGreeting::begin(connection, soon());
    greetings_.emplace_back(connection.descriptor(),
                            OutgoingGreeting("job", {type, text}, /*refusal=*/0));
    return connection;
  }

  // Returns the first greeting that any of the connections completes. `caller`: one of call_with().
  std::string receive_one(PendingConnections& connections, Connection& caller) {
    OutgoingGreeting& greeting =
        std::ranges::find(greetings_, caller.descriptor(), [](auto& entry) {
          return entry.first;
        })->second;
    for (const Deadline deadline = soon(); !deadline.passed();) {
      (void)greeting.try_receive(caller);
      std::vector<pollfd> sockets;
      connections.add_to(sockets);
      sockets.push_back({caller.descriptor(), POLLIN, 0});
      poll(sockets.data(), sockets.size(), connections.poll_milliseconds(deadline));
      for (const PendingConnections::Arrival& arrival : connections.receive()) {
        EXPECT_TRUE(arrival.is_of_job);
        return arrival.frame.payload;
      }
    }
    return "nothing was received";
  }

  Listener listener_{Endpoint{"127.0.0.1", 0}};
  Endpoint endpoint_{"127.0.0.1", listener_.port()};
  std::vector<Connection> silent_;
  std::deque<std::pair<int, OutgoingGreeting>> greetings_;  // by descriptor
};

TEST_F(PendingConnectionsTest, AreReceivedBehindMoreSilentOnesThanThereIsRoomFor) {
  call_silently(600);
  Connection caller = call_with("here I am");
  PendingConnections connections = take(milliseconds(50));
  EXPECT_EQ(receive_one(connections, caller), "here I am");
}

TEST_F(PendingConnectionsTest, AreReceivedBehindMoreHalfGreetedOnesThanThereIsRoomFor) {
  call_silently(600);
  for (Connection& half : silent_) OutgoingGreeting::begin(half, soon());
  Connection caller = call_with("here I am");
  PendingConnections connections(std::move(listener_), "job", 100, milliseconds(50),
                                 std::chrono::hours(1));
  EXPECT_EQ(receive_one(connections, caller), "here I am");
}

TEST_F(PendingConnectionsTest, StayOpenWhileThereIsRoom) {
  PendingConnections connections = take(milliseconds(0));
  Connection slow = call();
  EXPECT_TRUE(connections.receive().empty());
  EXPECT_TRUE(connections.receive().empty());
  OutgoingGreeting::begin(slow, soon());
  greetings_.emplace_back(slow.descriptor(), OutgoingGreeting("job", {1, "at last"}, 0));
  EXPECT_EQ(receive_one(connections, slow), "at last");
}

TEST_F(PendingConnectionsTest, AreClosedForALongMessageOrAnotherProtocol) {
  Connection oversized = call();
  oversized.send({1, std::string(101 + kSealBytes, 'x')}, soon());
  const Connection browser = call();
  ASSERT_EQ(::write(browser.descriptor(), "GET / HTTP/1.1\r\n", 16), 16);
  Connection good = call_with("good");
  PendingConnections connections = take(seconds(5));
  EXPECT_EQ(receive_one(connections, good), "good");
  EXPECT_TRUE(connections.receive().empty());
}

TEST_F(PendingConnectionsTest, AreClosedAfterHalfAGreeting) {
  PendingConnections connections(std::move(listener_), "job", 100, seconds(1), milliseconds(10));
  Connection half = call();
  OutgoingGreeting::begin(half, soon());
  bool is_closed = false;
  for (const Deadline deadline = soon(); !is_closed && !deadline.passed();) {
    EXPECT_TRUE(connections.receive().empty());
    try {
      const auto frame = half.try_receive();
      EXPECT_TRUE(!frame || frame->type == kGreetingChallenge);
    } catch (const PeerError&) {
      is_closed = true;
    }
  }
  EXPECT_TRUE(is_closed);
}

TEST_F(PendingConnectionsTest, AreReceivedAfterDescriptorsRanOutForAWhile) {
  if (kNeedsDescriptors != nullptr) GTEST_SKIP() << kNeedsDescriptors;
  call_silently(20);
  Connection caller = call_with("here I am");
  // The process can open ten more files, and twenty silent connections are ahead of the one that
  // sends.
  const FileLimit limit(static_cast<rlim_t>(caller.descriptor()) + 11);
  PendingConnections connections = take(milliseconds(50));
  EXPECT_TRUE(connections.receive().empty());
  EXPECT_FALSE(FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)));
  EXPECT_EQ(receive_one(connections, caller), "here I am");
}

}  // namespace
}  // namespace syncopate
