#include "ps/net/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline ten_seconds() { return Deadline::after(seconds(10)); }

std::pair<FileDescriptor, FileDescriptor> socket_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// A Connection under test, and the plain socket at its other end.
class AConnection : public testing::Test {
 protected:
  AConnection() {
    auto [ours, theirs] = socket_pair();
    connection_ = Connection(std::move(ours), "rank 1");
    other_ = std::move(theirs);
  }
  void arrive(std::string_view bytes) const {
    ASSERT_EQ(::send(other_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

  Connection connection_;
  FileDescriptor other_;
};

TEST_F(AConnection, AssemblesAFrameThatArrivesByteByByte) {
  const std::string bytes = encode_frame({7, std::string("a\0b", 3)});
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    arrive(bytes.substr(i, 1));
    ASSERT_FALSE(connection_.try_receive().has_value()) << i;
  }
  arrive(bytes.substr(bytes.size() - 1));
  const Frame frame = connection_.receive(ten_seconds());
  EXPECT_EQ(frame.type, 7);
  EXPECT_EQ(frame.payload, std::string("a\0b", 3));
}

TEST_F(AConnection, SplitsFramesThatArriveTogether) {
  arrive(encode_frame({1, "one"}) + encode_frame({2, ""}) + encode_frame({3, "three"}));
  EXPECT_EQ(connection_.receive(ten_seconds()).payload, "one");
  EXPECT_EQ(connection_.receive(ten_seconds()).type, 2);
  EXPECT_EQ(connection_.receive(ten_seconds()).payload, "three");
  EXPECT_FALSE(connection_.try_receive().has_value());
}

TEST_F(AConnection, RefusesAnotherProtocol) {
  arrive("GET / HTTP/1.1\r\n");
  EXPECT_EQ(message_of<PeerError>([&] { connection_.try_receive(); }),
            "rank 1: it uses another protocol (its first bytes are: 47 45 54 20 2f 20 48 "
            "54); is another program using this port?");
}

TEST_F(AConnection, RecognisesAParameterServer) {
  arrive(std::string_view("\xff\0\0\0\0\0\0\0\1\x7f", 10));
  EXPECT_TRUE(contains(message_of<PeerError>([&] { connection_.try_receive(); }),
                       "rank 1: it is a parameter server"));
}

TEST_F(AConnection, RefusesAnotherVersionOfTheProtocol) {
  std::string bytes = encode_frame({1, ""});
  bytes[4] = 9;
  arrive(bytes);
  EXPECT_TRUE(contains(message_of<PeerError>([&] { connection_.try_receive(); }), "version 9"));
}

TEST_F(AConnection, RefusesALengthBeyondTheLimitBeforeThePayloadArrives) {
  connection_.limit_payload(100);
  arrive(encode_frame({1, std::string(101, 'x')}).substr(0, 12));
  EXPECT_EQ(message_of<PeerError>([&] { connection_.try_receive(); }),
            "rank 1: it announced a message of 101 bytes, expected at most 100");
}

TEST_F(AConnection, ReturnsFramesBeforeTheEndAndThenNamesThePeer) {
  arrive(encode_frame({1, "last words"}));
  other_.reset();
  EXPECT_EQ(connection_.receive(ten_seconds()).payload, "last words");
  EXPECT_EQ(message_of<PeerError>([&] { connection_.receive(ten_seconds()); }),
            "rank 1: its connection closed");
}

TEST_F(AConnection, ReportsAnEndInTheMiddleOfAMessage) {
  arrive(encode_frame({1, "cut short"}).substr(0, 15));
  other_.reset();
  EXPECT_EQ(message_of<PeerError>([&] { connection_.receive(ten_seconds()); }),
            "rank 1: its connection closed in the middle of a message");
}

TEST_F(AConnection, ReceivesUntilTheDeadline) {
  EXPECT_EQ(message_of<PeerError>([&] { connection_.receive(Deadline::after(milliseconds(20))); }),
            "rank 1: it did not answer within 0.02 s");
}

TEST_F(AConnection, SendsUntilTheDeadline) {
  const Frame large{1, std::string(8U << 20U, 'x')};
  EXPECT_EQ(
      message_of<PeerError>([&] { connection_.send(large, Deadline::after(milliseconds(20))); }),
      "rank 1: it did not take a message of 8388608 bytes within 0.02 s");
}

TEST_F(AConnection, ThrowsWhenItSendsToAClosedPeer) {
  other_.reset();
  EXPECT_EQ(message_of<PeerError>([&] {
              connection_.send({1, "hello?"}, ten_seconds());
            }),
            "rank 1: its connection closed");  // SIGPIPE would end this program
}

TEST_F(AConnection, PassesALargeMessageInBothDirectionsAtOnce) {
  Connection peer(std::move(other_), "rank 0");
  const Frame large{1, std::string(8U << 20U, 'x')};
  std::string received;
  {
    const std::jthread other([&] {
      const std::jthread sender([&] { peer.send(large, ten_seconds()); });
      received = peer.receive(ten_seconds()).payload;
    });
    const std::jthread sender([&] { connection_.send(large, ten_seconds()); });
    EXPECT_EQ(connection_.receive(ten_seconds()).payload, large.payload);
  }
  EXPECT_EQ(received, large.payload);
}

TEST_F(AConnection, QueuesBytesThatTheSocketDoesNotTake) {
  Connection peer(std::move(other_), "rank 0");
  const std::string large(4U << 20U, 'x');
  connection_.queue({1, large});
  connection_.queue({2, "behind"});
  connection_.flush();
  EXPECT_TRUE(connection_.has_unsent());
  std::optional<Frame> first;
  for (const Deadline end = ten_seconds(); !first && !end.passed(); connection_.flush()) {
    first = peer.try_receive();
  }
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->payload, large);
  EXPECT_EQ(peer.receive(ten_seconds()).payload, "behind");
  EXPECT_FALSE(connection_.has_unsent());
}

TEST(Listener, IsReachedOverIpv4AndIpv6WhenItListensEverywhere) {
  Listener listener(Endpoint{"", 0});
  for (const std::string host : {"127.0.0.1", "::1"}) {
    const FileDescriptor probe(::socket(AF_INET6, SOCK_STREAM, 0));
    if (host == "::1" && !probe) GTEST_SKIP() << "this machine has no IPv6";
    Connection caller = connect_to({host, listener.port()}, "rank 0", ten_seconds());
    std::optional<Connection> called = listener.accept(ten_seconds());
    ASSERT_TRUE(called.has_value()) << host;
    EXPECT_EQ(called->remote_address(), host);
    EXPECT_EQ(called->local_address(), host);
    caller.send({4, host}, ten_seconds());
    EXPECT_EQ(called->receive(ten_seconds()).payload, host);
  }
}

TEST(Listener, GivesUpAtTheDeadline) {
  Listener listener(Endpoint{"127.0.0.1", 0});
  EXPECT_FALSE(listener.accept(Deadline::after(milliseconds(20))).has_value());
}

TEST(Listener, NamesAPortThatIsInUse) {
  const Listener first(Endpoint{"127.0.0.1", 0});
  const Endpoint taken{"127.0.0.1", first.port()};
  const std::string message = message_of<UsageError>([&] { const Listener second(taken); });
  EXPECT_TRUE(contains(message, to_string(taken), "is in use"));
}

TEST(Listener, RefusesAnAddressOfAnotherMachine) {
  // The address 192.0.2.1 belongs to no machine: RFC 5737 reserves 192.0.2.0/24 for documentation.
  const std::string message = message_of<UsageError>([&] {
    const Listener other(Endpoint{"192.0.2.1", 4000});
  });
  EXPECT_TRUE(contains(message, "'192.0.2.1' is not an address of this machine"));
}

TEST(Listener, AdoptsASocketAndMakesItCloseOnExec) {
  Listener first(Endpoint{"127.0.0.1", 0});
  const std::uint16_t port = first.port();
  FileDescriptor inherited = first.release();
  fcntl(inherited.get(), F_SETFD, 0);
  Listener adopted(std::move(inherited));
  EXPECT_EQ(adopted.port(), port);
  EXPECT_NE(fcntl(adopted.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
  const Connection caller = connect_to({"127.0.0.1", port}, "rank 0", ten_seconds());
  EXPECT_TRUE(adopted.accept(ten_seconds()).has_value());
}

TEST(Listener, RefusesADescriptorThatDoesNotListen) {
  const FileDescriptor file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_THROW(Listener(FileDescriptor(fcntl(file.get(), F_DUPFD_CLOEXEC, 0))), UsageError);
}

TEST(ConnectTo, RetriesUntilTheListenerIsThere) {
  Listener reserved(Endpoint{"127.0.0.1", 0});
  const Endpoint endpoint{"127.0.0.1", reserved.port()};
  reserved = Listener(Endpoint{"127.0.0.1", 0});  // now no socket listens at `endpoint`
  std::optional<Connection> called;
  {
    const std::jthread late([&] {
      try {
        connect_to(endpoint, "rank 0", Deadline::after(milliseconds(50)));
      } catch (const PeerError&) {
        Listener listener(endpoint);
        called = listener.accept(ten_seconds());
      }
    });
    const Connection caller = connect_to(endpoint, "rank 0", ten_seconds());
  }
  EXPECT_TRUE(called.has_value());
}

TEST(ConnectTo, NamesThePeerAndTheReasonWhenItFails) {
  Listener reserved(Endpoint{"127.0.0.1", 0});
  const Endpoint endpoint{"127.0.0.1", reserved.port()};
  reserved = Listener(Endpoint{"127.0.0.1", 0});
  const std::string message = message_of<PeerError>(
      [&] { connect_to(endpoint, "rank 0", Deadline::after(milliseconds(100))); });
  EXPECT_TRUE(contains(message, "rank 0 could not be reached at " + to_string(endpoint) +
                                    " within 0.1 s: Connection refused"));
}

TEST(ConnectTo, RefusesAnUnknownHostAfterTheTimeout) {
  // The host name is invalid, since a label has at most 63 characters, so no name server is asked.
  const Endpoint nowhere{std::string(70, 'x'), 4000};
  const Deadline deadline = Deadline::after(milliseconds(200));
  const std::string message =
      message_of<UsageError>([&] { connect_to(nowhere, "rank 0", deadline); });
  EXPECT_TRUE(contains(message, "the host name 'xxx"));
  EXPECT_TRUE(deadline.passed());
}

TEST(Listener, RefusesAnUnknownHostAtOnce) {
  EXPECT_THROW(Listener(Endpoint{std::string(70, 'x'), 0}), UsageError);
}

TEST(ConnectTo, SetsNoDelayAndCloseOnExec) {
  Listener listener(Endpoint{"127.0.0.1", 0});
  const Connection caller = connect_to({"127.0.0.1", listener.port()}, "rank 0", ten_seconds());
  const std::optional<Connection> called = listener.accept(ten_seconds());
  ASSERT_TRUE(called.has_value());
  for (const int descriptor : {caller.descriptor(), called->descriptor()}) {
    int no_delay = 0;
    socklen_t length = sizeof no_delay;
    getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &no_delay, &length);
    EXPECT_EQ(no_delay, 1);
    EXPECT_NE(fcntl(descriptor, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    std::array<char, 16> congestion{};
    length = congestion.size();
    getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, congestion.data(), &length);
    EXPECT_STREQ(congestion.data(), "reno");
  }
}

TEST(InSeconds, FormatsDurations) {
  EXPECT_EQ(in_seconds(seconds(5)), "5 s");
  EXPECT_EQ(in_seconds(milliseconds(3500)), "3.5 s");
  EXPECT_EQ(in_seconds(milliseconds(50)), "0.05 s");
  EXPECT_EQ(in_seconds(milliseconds(0)), "0 s");
}

}  // namespace
}  // namespace syncopate
