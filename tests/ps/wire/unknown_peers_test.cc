// Tests programs that connect to a socket's port without using this protocol.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>

#include "ps/net/connection.h"
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
  foreign.frames.push_back(ZmqFrame::copy_of(std::as_bytes(std::span("no header"sv))));
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

}  // namespace
}  // namespace syncopate::ps::wire
