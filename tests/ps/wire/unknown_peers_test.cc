// Tests programs that connect to a socket's port without using this protocol.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ps/net/connection.h"
#include "ps/net/socket.h"
#include "tests/ps/wire/socket_case.h"

namespace syncopate::ps::wire {
namespace {

using namespace std::string_view_literals;

// Returns a plain TCP connection that has sent these bytes.
Connection unknown_peer(std::uint16_t port, std::string_view text) {
  Connection connection =
      connect_to({"127.0.0.1", port}, "the server", Deadline::after(std::chrono::seconds(10)));
  EXPECT_EQ(::send(connection.descriptor(), text.data(), text.size(), MSG_NOSIGNAL),
            std::ssize(text));
  return connection;
}

// Returns a connection over which both sides have sent the greeting and the handshake of ZMTP 3.0.
// Source: rfc.zeromq.org/spec/23, NULL mechanism.
Connection peer_after_handshake(std::uint16_t port) {
  std::string handshake("\xFF\0\0\0\0\0\0\0\1\x7F\3\0NULL"sv);
  handshake.resize(64, '\0');
  const std::string ready("\5READY\13Socket-Type\0\0\0\6DEALER"sv);
  handshake += '\4' + std::string(1, static_cast<char>(ready.size())) + ready;
  Connection connection = unknown_peer(port, handshake);
  std::array<char, 64> bytes{};
  for (std::size_t received = 0; received <= bytes.size();) {
    EXPECT_TRUE(
        wait_ready(connection.descriptor(), POLLIN, Deadline::after(std::chrono::seconds(60))));
    const ssize_t count = recv(connection.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    EXPECT_GT(count, 0);
    if (count <= 0) break;
    received += static_cast<std::size_t>(count);
  }
  return connection;
}

// Returns the beginning of a ZMTP frame of this length, with the flags of a long frame.
std::string frame_of(std::uint64_t length, std::string_view content) {
  std::string bytes(1, '\2');
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift);
  return bytes.append(content);
}

void expect_in_service(Socket& server, Socket& worker) {
  EXPECT_TRUE(worker.send(numbered("", 7)));
  const Envelope message = await_message(server, {&worker});
  EXPECT_EQ(number_of(message), 7);
  EXPECT_TRUE(server.send(numbered(message.peer, 8)));
  EXPECT_EQ(number_of(await_message(worker, {&server})), 8);
}

std::string noise(std::size_t size) {
  std::string text;
  for (std::uint64_t state = 1; text.size() < size; state = state * 6364136223846793005U + 1) {
    text += static_cast<char>(state >> 56U);
  }
  return text;
}

TEST(UnknownPeer, DoesNotDisturbOtherPeers) {
  Line line;
  const auto worker = line.call();
  std::vector<Connection> peers;
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), noise(10000), std::string(""),
        std::string("\xFF\0\0\0\0\0\0\0\1\x7F"sv),                   // half a greeting
        std::string("\xFF\0\0\0\0\0\0\0\1\x7F\3\0"sv) + noise(500),  // half a greeting, noise
        std::string(100, '\xFF'), std::string(100, '\0')}) {
    peers.push_back(unknown_peer(line.server->port(), text));
    expect_in_service(*line.server, *worker);
  }
  peers.clear();
  expect_in_service(*line.server, *worker);
}

// Version 1.0 of ZeroMQ's protocol has no greeting: a frame begins with its length and flags.
TEST(UnknownPeer, OfAnOldZeroMqVersionIsCountedAndIgnored) {
  Line line;
  const auto worker = line.call();
  const Connection old = unknown_peer(line.server->port(), "\1\0\6\0hello"sv);
  EXPECT_TRUE(wait_until({line.server.get()}, [&] {
    EXPECT_FALSE(line.server->receive());
    return line.server->foreign_messages() == 1;
  }));
  expect_in_service(*line.server, *worker);
}

TEST(MessageWithoutAValidHeader, IsCountedAndSkipped) {
  Line line;
  const auto worker = line.call();
  Envelope foreign;
  foreign.frames.push_back(copied_frame(std::as_bytes(std::span("no header"sv))));
  EXPECT_TRUE(worker->send(std::move(foreign)));
  Envelope empty;
  empty.frames.emplace_back();
  EXPECT_TRUE(worker->send(std::move(empty)));
  MessageT newer = make_message(ReadyT{});
  newer.protocol = kProtocol + 1;
  EXPECT_TRUE(worker->send(envelope("", newer)));
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(line.server->foreign_messages(), 3);
  EXPECT_TRUE(line.server->send(envelope(line.routing_id_of(*worker), newer)));
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(worker->foreign_messages(), 1);
}

TEST(MessageOfTooManyFrames, IsCountedAndSkipped) {
  Line line({.most_frames = 3});
  const auto worker = line.call();
  const std::vector<std::byte> byte(1);
  for (const std::size_t frames : {3, 100}) {  // counts frames after the header
    worker->send(numbered("", 1, std::vector(frames, byte)));
  }
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(line.server->foreign_messages(), 2);
}

TEST(MessageOfTheMostFrames, IsReceived) {
  Line line({.most_frames = 3});
  const auto worker = line.call();
  const std::vector<std::byte> byte(1);
  worker->send(numbered("", 1, {byte, byte, byte}));
  worker->send(numbered("", 2, {byte, byte}));
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 2);
  EXPECT_EQ(line.server->foreign_messages(), 1);
}

TEST(TooLongFrame, ClosesTheConnectionOfItsSenderOnly) {
  Line line({.longest_frame = 10000});
  const auto worker = line.call();
  const auto oversized = line.call();
  oversized->send(numbered("", 1, {std::vector<std::byte>(10001)}));
  await_link(*oversized, LinkEvent::kDisconnected, {line.server.get()});
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(line.server->foreign_messages(), 0);
  await_link(*oversized, LinkEvent::kConnected, {line.server.get()});
  oversized->send(numbered("", 2, {std::vector<std::byte>(10000)}));
  EXPECT_EQ(number_of(await_message(*line.server, {oversized.get()})), 2);
}

// Waits until this number of connections has ended.
void await_ended(Socket& server, std::int64_t count) {
  EXPECT_TRUE(wait_until({&server}, [&] { return server.callers_without_greeting() >= count; }));
}

// Returns whether the server has closed a connection that sends nothing. Waits for it if `awaited`.
bool is_closed(const Connection& connection, bool awaited) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(awaited ? 60 : 0));
  while (wait_ready(connection.descriptor(), POLLIN, deadline)) {
    char byte = 0;
    if (recv(connection.descriptor(), &byte, 1, MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

TEST(UnknownPeer, IsCountedWhenItsConnectionEnds) {
  Line line;
  const auto worker = line.call_with_greeting();
  const std::uint16_t port = line.server->port();
  (void)unknown_peer(port, "");
  (void)unknown_peer(port, "\xFF\0\0\0\0\0\0\0\1\x7F"sv);
  await_ended(*line.server, 2);
  // ZeroMQ ends these connections.
  const Connection noisy = unknown_peer(port, noise(10000));
  await_ended(*line.server, 3);
  for (const std::uint64_t length : {std::uint64_t{1} << 62U, std::uint64_t{kLongestFrame} + 1}) {
    const Connection huge = peer_after_handshake(port);
    const std::string bytes = frame_of(length, "x");
    EXPECT_EQ(::send(huge.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              std::ssize(bytes));
    EXPECT_TRUE(is_closed(huge, true)) << length;
  }
  await_ended(*line.server, 5);
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(line.server->callers_without_greeting(), 5);
}

TEST(Greeting, KeepsItsConnection) {
  Line line(limits_with({.timeout = std::chrono::milliseconds(300)}));
  const auto worker = line.call_with_greeting();
  const Connection silent = unknown_peer(line.server->port(), "");
  await_ended(*line.server, 1);
  EXPECT_TRUE(is_closed(silent, true));
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(worker->link_event(), std::nullopt);
  EXPECT_EQ(line.server->callers_without_greeting(), 1);
}

TEST(Greeting, ThatWaitsToBeReceivedKeepsItsConnection) {
  Line line(limits_with({.most = 1, .timeout = std::chrono::hours(1)}));
  const auto worker = line.call();
  expect_in_service(*line.server, *worker);
  EXPECT_TRUE(worker->send(numbered("", 0)));
  pollfd arrived{line.server->descriptors().front(), POLLIN, 0};
  EXPECT_EQ(poll(&arrived, 1, 60000), 1);
  const Connection silent = unknown_peer(line.server->port(), "");
  pollfd opened{line.server->link_descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&opened, 1, 60000), 1);
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 0);
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(line.server->callers_without_greeting(), 0);
}

// A pair of connected sockets, as ZeroMQ's descriptor of a caller and the caller's end.
struct Caller {
  Caller() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    for (const int end : ends) close(end);
  }
  int descriptor() const { return ends[0]; }
  std::array<int, 2> ends{};
};

constexpr CallerLimits kNoTime{.timeout = std::chrono::milliseconds(0)};

// With several I/O threads ZeroMQ may deliver a message before it reports the connection.
TEST(UnknownCallers, KeepACallerThatIsReportedAfterItsGreeting) {
  const Caller caller;
  UnknownCallers callers(kNoTime);
  callers.accept(caller.descriptor());
  callers.on_opened(caller.descriptor());
  callers.close_overdue();
  callers.on_closed(caller.descriptor());
  EXPECT_EQ(callers.ended(), 0);
}

TEST(UnknownCallers, DoNotTakeTheGreetingOfAClosedConnectionForOneOfTheNext) {
  const Caller caller;
  UnknownCallers callers(kNoTime);
  callers.on_opened(caller.descriptor());
  callers.on_closed(caller.descriptor());
  callers.accept(caller.descriptor());
  callers.on_opened(caller.descriptor());
  callers.close_overdue();
  EXPECT_EQ(callers.ended(), 2);
}

TEST(SilentCaller, IsClosedWhenItsTimeIsOver) {
  Line line(limits_with({.timeout = std::chrono::milliseconds(300)}));
  const auto worker = line.call_with_greeting();
  const Connection silent = unknown_peer(line.server->port(), "");
  const auto without_greeting = line.call();  // speaks ZMTP, and says no more
  await_ended(*line.server, 2);
  EXPECT_TRUE(is_closed(silent, true));
  await_link(*without_greeting, LinkEvent::kDisconnected, {line.server.get()});
  expect_in_service(*line.server, *worker);
  EXPECT_EQ(worker->link_event(), std::nullopt);
}

TEST(SilentCallers, AreClosedOldestFirstWhenThereAreTooMany) {
  Line line(limits_with({.most = 3, .timeout = std::chrono::hours(1)}));
  const auto worker = line.call_with_greeting();
  std::vector<Connection> silent;
  for (int i = 0; i < 5; ++i) {
    silent.push_back(unknown_peer(line.server->port(), ""));
    expect_in_service(*line.server, *worker);
  }
  await_ended(*line.server, 2);
  for (std::size_t i = 0; i < silent.size(); ++i) {
    EXPECT_EQ(is_closed(silent[i], i < 2), i < 2) << "caller " << i;
  }
  EXPECT_EQ(line.server->callers_without_greeting(), 2);
  expect_in_service(*line.server, *worker);
}

// ZeroMQ would collect the frames of an endless message until memory is exhausted.
TEST(CallerThatSendsEndlessly, IsClosedBeforeItsGreeting) {
  Line line(limits_with({.timeout = std::chrono::hours(1), .most_bytes = 100000}));
  const auto worker = line.call_with_greeting();
  const Connection endless = peer_after_handshake(line.server->port());
  const std::string frame = std::string("\3\0\0\0\0\0\0\x10\0"sv) + std::string(4096, 'x');
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  std::int64_t sent = 0;
  while (line.server->callers_without_greeting() == 0 && !deadline.passed()) {
    const ssize_t bytes =
        ::send(endless.descriptor(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes > 0) sent += bytes;
    expect_in_service(*line.server, *worker);
  }
  EXPECT_EQ(line.server->callers_without_greeting(), 1);
  EXPECT_GT(sent, 100000);
  expect_in_service(*line.server, *worker);
}

}  // namespace
}  // namespace syncopate::ps::wire
