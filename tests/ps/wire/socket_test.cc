#include "ps/wire/zmq_socket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <ranges>
#include <vector>

#include "models/base/errors.h"
#include "models/base/open_files.h"
#include "ps/net/connection.h"
#include "tests/ps/wire/socket_case.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps::wire {
namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte((i * 7 + i / 251) % 256);
  return bytes;
}

TEST(Socket, ExchangesFramesOfAMegabyteInBothDirections) {
  Line line;
  const auto worker = line.call();
  const Bytes gradient = pattern(std::size_t{1} << 20);
  const Bytes values = pattern(1000003);
  for (int step = 0; step < 20; ++step) {
    EXPECT_TRUE(worker->send(numbered("", step, {gradient, pattern(3)})));
    const Envelope push = await_message(*line.server, {worker.get()});
    EXPECT_EQ(number_of(push), step);
    ASSERT_EQ(push.frames.size(), 3U);
    EXPECT_TRUE(std::ranges::equal(bytes_in(push.frames[1]), gradient));
    EXPECT_TRUE(std::ranges::equal(bytes_in(push.frames[2]), pattern(3)));
    EXPECT_TRUE(line.server->send(numbered(push.peer, -step, {values})));
    const Envelope answer = await_message(*worker, {line.server.get()});
    EXPECT_EQ(number_of(answer), -step);
    ASSERT_EQ(answer.frames.size(), 2U);
    EXPECT_TRUE(std::ranges::equal(bytes_in(answer.frames[1]), values));
  }
  EXPECT_EQ(line.server->foreign_messages(), 0);
}

TEST(Socket, SendsEmptyFrames) {
  Line line;
  const auto worker = line.call();
  Envelope message = numbered("", 1, {Bytes{}});
  message.frames.push_back(borrowed_frame({}, nullptr));
  worker->send(std::move(message));
  const Envelope arrived = await_message(*line.server, {worker.get()});
  ASSERT_EQ(arrived.frames.size(), 3U);
  EXPECT_TRUE(arrived.frames[1].empty());
}

TEST(BorrowedMemory, IsReleasedAfterItIsSent) {
  Line line;
  const auto worker = line.call();
  const Bytes memory = pattern(std::size_t{1} << 20);
  std::atomic<int> given_back = 0;
  Envelope message = numbered("", 1);
  message.frames.push_back(borrowed_frame(memory, [&] { ++given_back; }));
  EXPECT_EQ(message.frames[1].data(), memory.data());
  worker->send(std::move(message));
  const Envelope arrived = await_message(*line.server, {worker.get()});
  EXPECT_TRUE(std::ranges::equal(bytes_in(arrived.frames[1]), memory));
  // After the I/O thread has sent a message, it calls the release function: no descriptor wakes
  // poll.
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  while (given_back == 0 && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(given_back, 1);
}

TEST(BorrowedMemory, IsReleasedIfItIsNeverSent) {
  int given_back = 0;
  const Bytes memory = pattern(100);
  const auto message = [&] {
    Envelope made = numbered("w9.1.1", 1);
    made.frames.push_back(borrowed_frame(memory, [&] { ++given_back; }));
    return made;
  };
  {
    const zmq::message_t unused = borrowed_frame(memory, [&] { ++given_back; });
  }
  EXPECT_EQ(given_back, 1);
  Line line;
  EXPECT_FALSE(line.server->send(message()));  // the peer is unknown
  EXPECT_EQ(given_back, 2);
  {
    const auto early = Socket::connect(line.context, {"127.0.0.1", 1});  // no socket listens there
    Envelope waiting = message();
    const std::size_t header = waiting.frames[0].size();
    EXPECT_TRUE(early->send(std::move(waiting)));
    EXPECT_EQ(early->queued_bytes(), header + 100);
    EXPECT_EQ(given_back, 2);
  }
  EXPECT_EQ(given_back, 3);
}

// 600 messages of 64 KiB do not fit into the buffers of ZeroMQ and the system.
constexpr int kMany = 600;

TEST(SlowServer, MakesAWorkersMessagesWaitInOrder) {
  Line line;
  const auto worker = line.call();
  const Bytes gradient = pattern(65536);
  for (int i = 0; i < kMany; ++i) {
    Envelope message = numbered("", i);
    message.frames.push_back(borrowed_frame(gradient, nullptr));
    EXPECT_TRUE(worker->send(std::move(message)));
  }
  EXPECT_GT(worker->queued_bytes(), 65536);
  for (int i = 0; i <= kMany; ++i) {
    // ZeroMQ has taken 64 messages by now, so the socket has room for a new message, but earlier
    // messages go first.
    if (i == 50) worker->send(numbered("", kMany));
    std::vector<Socket*> attended;
    if (i >= 50) attended.push_back(worker.get());
    ASSERT_EQ(number_of(await_message(*line.server, attended)), i);
  }
  EXPECT_EQ(worker->queued_bytes(), 0);
}

TEST(SlowWorker, DoesNotDelayOtherWorkers) {
  Line line;
  const auto slow = line.call();
  const auto quick = line.call();
  const std::string slow_id = line.routing_id_of(*slow);
  const std::string quick_id = line.routing_id_of(*quick);
  const Bytes values = pattern(65536);
  for (int i = 0; i < kMany; ++i) {
    Envelope message = numbered(slow_id, i);
    message.frames.push_back(borrowed_frame(values, nullptr));
    EXPECT_TRUE(line.server->send(std::move(message)));
    if (i % 100 == 99) {
      EXPECT_TRUE(line.server->send(numbered(quick_id, i)));
      EXPECT_EQ(number_of(await_message(*quick, {line.server.get()})), i);
    }
  }
  EXPECT_GT(line.server->queued_bytes(), 65536);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(number_of(await_message(*slow, {line.server.get()})), i);
  }
  EXPECT_EQ(line.server->queued_bytes(), 0);
}

TEST(WorkerThatHasLeft, CannotBeSentTo) {
  Line line;
  EXPECT_FALSE(line.server->send(numbered("w9.1.1", 1)));
  auto worker = line.call();
  const std::string id = line.routing_id_of(*worker);
  EXPECT_TRUE(line.server->send(numbered(id, 1)));
  EXPECT_EQ(number_of(await_message(*worker, {line.server.get()})), 1);
  worker.reset();
  EXPECT_TRUE(wait_until({line.server.get()}, [&] { return !line.server->send(numbered(id, 2)); }));
  EXPECT_EQ(line.server->queued_bytes(), 0);
}

TEST(WorkerThatHasLeft, LeavesNoQueuedMessages) {
  Line line;
  auto worker = line.call();
  const std::string id = line.routing_id_of(*worker);
  const Bytes values = pattern(65536);
  for (int i = 0; i < kMany; ++i) {
    Envelope message = numbered(id, i);
    message.frames.push_back(borrowed_frame(values, nullptr));
    line.server->send(std::move(message));
  }
  EXPECT_GT(line.server->queued_bytes(), 0);
  worker.reset();
  EXPECT_TRUE(wait_until({line.server.get()}, [&] { return line.server->queued_bytes() == 0; }));
}

// Sending on a socket consumes the edge of ZMQ_FD for messages that have arrived; without a remedy
// its owner would sleep on in wait_until().
TEST(SocketThatSends, StillWakesItsOwnerForMessages) {
  Line line;
  const auto worker = line.call();
  std::int64_t sent = 0;
  std::int64_t answered = 0;
  const auto exchange_messages = [&] {
    if (sent < 2000 && sent - answered < 10) worker->send(numbered("", sent++));
    while (const auto message = line.server->receive()) {
      line.server->send(numbered(message->peer, number_of(*message)));
    }
    while (const auto message = worker->receive()) {
      EXPECT_EQ(number_of(*message), answered++);
      if (sent < 2000) worker->send(numbered("", sent++));
    }
    return answered == 2000;
  };
  EXPECT_TRUE(wait_until({worker.get(), line.server.get()}, exchange_messages)) << answered;
}

TEST(IoThreads, AreHalfOfTheCpusFromOneToFour) {
  EXPECT_EQ(io_threads_for(1), 1);
  EXPECT_EQ(io_threads_for(2), 1);
  EXPECT_EQ(io_threads_for(5), 2);
  EXPECT_EQ(io_threads_for(64), 4);
}

TEST(IoThreads, KeepTheOrderOfEachPeersMessages) {
  constexpr int kPeers = 12;
  constexpr int kMessages = 50;
  Context context(4);
  const auto server = Socket::listen(context, Endpoint{"127.0.0.1", 0}, for_any_caller());
  std::vector<std::unique_ptr<Socket>> workers;
  std::vector<Socket*> all{server.get()};
  for (int w = 0; w < kPeers; ++w) {
    workers.push_back(Socket::connect(context, {"127.0.0.1", server->port()}));
    all.push_back(workers.back().get());
    for (int i = 0; i < kMessages; ++i) workers.back()->send(numbered("", i, {pattern(100000)}));
  }
  std::map<std::string, int> received;
  EXPECT_TRUE(wait_until(all, [&] {
    while (const auto message = server->receive()) {
      EXPECT_EQ(number_of(*message), received[message->peer]++);
    }
    return std::ranges::count(received | std::views::values, kMessages) == kPeers;
  }));
}

TEST(ListeningSocket, MayBeInherited) {
  Context context;
  Listener bound(Endpoint{"127.0.0.1", 0});
  const std::uint16_t port = bound.port();
  const auto server = Socket::listen(context, bound.release(), for_any_caller());
  EXPECT_EQ(server->port(), port);
  const auto worker = Socket::connect(context, {"127.0.0.1", port});
  worker->send(numbered("", 5));
  EXPECT_EQ(number_of(await_message(*server, {worker.get()})), 5);
  EXPECT_THROW(Socket::listen(context, FileDescriptor(dup(0))), UsageError);
}

TEST(PortInUse, IsNamedInTheError) {
  Line line;
  EXPECT_TRUE(contains(
      message_of<UsageError>([&] {
        const auto second = Socket::listen(line.context, {"127.0.0.1", line.server->port()});
      }),
      std::to_string(line.server->port())));
}

TEST(AnInvalidOption, IsAnErrorThatNamesTheCall) {
  Context context;
  zmq::socket_t socket = context.make_socket(zmq::socket_type::pair);
  EXPECT_EQ(message_of<FileError>([&] { set_option(socket, zmq::sockopt::linger, -2); }),
            "zmq_setsockopt of option " + std::to_string(ZMQ_LINGER) + ": Invalid argument");
}

// By default ZeroMQ allows 1,023 sockets per context, which a worker of 340 shards exceeds.
TEST(AContext, HasAsManySocketsAsFilesMayBeOpen) {
  constexpr int kSockets = 1100;
  raise_open_file_limit();
  if (open_file_limit() < kSockets + 100) GTEST_SKIP() << "the hard limit on open files is too low";
  Context context;
  std::vector<zmq::socket_t> sockets;
  for (int i = 0; i < kSockets; ++i) sockets.push_back(context.make_socket(zmq::socket_type::pair));
  EXPECT_EQ(sockets.size(), std::size_t{kSockets});
}

}  // namespace
}  // namespace syncopate::ps::wire
