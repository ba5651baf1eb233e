#include "ps/wire/heartbeat_socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "ps/net/connection.h"
#include "ps/net/socket.h"
#include "tests/ps/wire/socket_case.h"

namespace syncopate::ps::wire {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval(20);
constexpr milliseconds kTimeout(200);
// For a peer that must not be lost, however late its messages are read.
constexpr std::chrono::hours kNoTimeout(1);

// Waits in poll(2) as the owner of the socket does.
bool wait_for(HeartbeatSocket& socket, const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (!condition()) {
    if (deadline.passed()) return false;
    std::vector<pollfd> polled;
    for (const int descriptor : socket.descriptors()) polled.push_back({descriptor, POLLIN, 0});
    poll(polled.data(), polled.size(), 20);
  }
  return true;
}

std::optional<Received> await_received(HeartbeatSocket& socket) {
  std::optional<Received> message;
  wait_for(socket, [&] { return (message = socket.receive()).has_value(); });
  return message;
}

// A task with a HeartbeatSocket, connected to a plain socket that the test uses.
struct ATask : public testing::Test {
  void SetUp() override {
    ASSERT_TRUE(wait_for(task, [&] {
      server->flush();
      return task.link_event() == LinkEvent::kConnected;
    }));
    task.send(numbered("", 0));
    peer = await_message(*server, {}).peer;
  }

  Context context;
  std::unique_ptr<Socket> server = Socket::listen(context, {"127.0.0.1", 0}, for_any_caller());
  std::atomic<std::int64_t> step{7};
  HeartbeatSocket task{Socket::connect(context, {"127.0.0.1", server->port()}), kInterval, step};
  std::string peer;  // the task's routing id at the server
};

TEST_F(ATask, SendsHeartbeatsWhileItDoesSomethingElse) {
  task.watch("", kNoTimeout, "");
  EXPECT_EQ(number_of(await_message(*server, {})), 7);
  step = 8;
  std::int64_t number = 7;
  for (int i = 0; i < 10 && number == 7; ++i) number = number_of(await_message(*server, {}));
  EXPECT_EQ(number, 8);
}

TEST_F(ATask, ReadsWhatItsPeerSendsWhileItDoesSomethingElse) {
  task.watch("", kNoTimeout, "");
  await_message(*server, {});
  // The task does not call receive() in this loop.
  for (int i = 0; i < 10; ++i) {
    server->send(numbered(peer, 100 + i));
    LeasesT leases;
    leases.finished = i % 2 == 1;
    server->send(envelope(peer, make_message(std::move(leases))));
    server->flush();
    await_message(*server, {});
    EXPECT_TRUE(task.lost().empty());
  }
  for (int i = 0; i < 10; ++i) {
    const auto message = await_received(task);
    ASSERT_TRUE(message && message->header.body.AsLeases() != nullptr);
    EXPECT_EQ(message->header.body.AsLeases()->finished, i % 2 == 1);
  }
  EXPECT_EQ(task.step(""), 109);
}

TEST_F(ATask, LosesASilentPeerUntilItSendsAgain) {
  task.watch("", kTimeout, "");
  ASSERT_TRUE(wait_for(task, [&] { return !task.lost().empty(); }));
  const LostPeer lost = task.lost().at("");
  EXPECT_GE(lost.silence - lost.unobserved, kTimeout) << describe(lost);
  EXPECT_EQ(lost.process, "");
  await_message(*server, {});
  server->send(numbered(peer, 1));
  EXPECT_TRUE(wait_for(task, [&] {
    server->flush();
    return task.lost().empty();
  }));
}

TEST_F(ATask, WaitsLongerInSetUpForAPeerWhoseProcessIsAlive) {
  // The peer is a socket of this process, which is alive but sends nothing.
  step = 0;
  task.watch("", kTimeout, process_name(getpid()));
  ASSERT_TRUE(wait_for(task, [&] { return !task.lost().empty(); }));
  const LostPeer lost = task.lost().at("");
  EXPECT_GE(lost.silence, PeerSilence::kLongTimeout * kTimeout);
  EXPECT_TRUE(lost.process.starts_with("; its process is alive")) << lost.process;
}

// The peer's last message may still be unread, as the end of its connection is.
TEST_F(ATask, WaitsLongerForAPeerWhoseProcessHasEndedBeforeItsConnection) {
  const std::string ended = process_name(getpid()) + "1";  // with another start time
  task.watch("", kTimeout, ended);
  ASSERT_TRUE(wait_for(task, [&] { return !task.lost().empty(); }));
  const LostPeer lost = task.lost().at("");
  EXPECT_GE(lost.silence, PeerSilence::kLongTimeout * kTimeout);
  EXPECT_EQ(lost.process, "; its process has ended");
}

// A worker would wait for leases without end if server 0 hung and its heartbeats continued.
TEST_F(ATask, SendsNoHeartbeatsWhileItsOwnerHangs) {
  auto hangs_at = Socket::listen(context, {"127.0.0.1", 0}, for_any_caller());
  HeartbeatSocket hanging(Socket::connect(context, {"127.0.0.1", hangs_at->port()}), kInterval,
                          step, milliseconds(300));
  ASSERT_TRUE(wait_for(hanging, [&] {
    hangs_at->flush();
    return hanging.link_event() == LinkEvent::kConnected;
  }));
  hanging.watch("", kNoTimeout, "");
  await_message(*hangs_at, {});
  const auto end = Deadline::after(std::chrono::seconds(60));
  const auto is_silent = [&] {
    const auto silent = Deadline::after(std::chrono::seconds(1));  // 50 heartbeats
    while (!silent.passed()) {
      hangs_at->flush();
      if (hangs_at->receive()) return false;
      pollfd readable{hangs_at->descriptors().front(), POLLIN, 0};
      poll(&readable, 1, 20);
    }
    return true;
  };
  bool was_silent = false;
  while (!was_silent && !end.passed()) was_silent = is_silent();
  EXPECT_TRUE(was_silent);
  EXPECT_TRUE(wait_for(hanging, [&] {
    hangs_at->flush();
    return hanging.lost().empty() && hangs_at->receive().has_value();
  })) << "no heartbeats since the owner continues";
}

TEST_F(ATask, ReturnsAHeartbeatOfAPeerThatIsNotWatched) {
  task.send(numbered("", 5));
  await_message(*server, {});
  server->send(numbered(peer, 6));
  const auto message = await_received(task);
  ASSERT_TRUE(message);
  EXPECT_EQ(number_of(*message), 6);
}

// A message of the lost connection would pass for one of the next connection.
TEST_F(ATask, ReceivesWhatItsPeerSentBeforeItIsNotifiedOfTheLoss) {
  server->send(envelope(peer, make_message(LeasesT())));
  server->flush();
  // The last descriptor is readable when the heartbeat thread has read the message.
  pollfd read{task.descriptors().back(), POLLIN, 0};
  ASSERT_TRUE(wait_for(task, [&] { return poll(&read, 1, 0) == 1; }));
  server.reset();
  ASSERT_TRUE(wait_for(task, [&] { return !task.send(numbered("", 1)); }));
  EXPECT_EQ(task.link_event(), std::nullopt);
  const auto message = await_received(task);
  EXPECT_TRUE(message && message->header.body.AsLeases() != nullptr);
  EXPECT_TRUE(wait_for(task, [&] { return task.link_event() == LinkEvent::kDisconnected; }));
}

TEST_F(ATask, SendsNoHeartbeatOverANewConnectionBeforeItsOwner) {
  task.watch("", kTimeout, "");
  await_message(*server, {});
  const std::uint16_t port = server->port();
  server.reset();
  ASSERT_TRUE(wait_for(task, [&] { return task.link_event() == LinkEvent::kDisconnected; }));
  server = Socket::listen(context, {"127.0.0.1", port}, for_any_caller());
  ASSERT_TRUE(wait_for(task, [&] {
    server->flush();
    return task.link_event() == LinkEvent::kConnected;
  }));
  task.send(envelope("", make_message(HelloT())));
  task.watch("", kNoTimeout, "");
  const Envelope first = await_message(*server, {});
  ASSERT_FALSE(first.frames.empty());
  EXPECT_EQ(decode(bytes_in(first.frames.front()))->body.type, Body::Hello);
}

// A listening task that does something else, and sends no heartbeats for as long.
struct ABusyServer : public testing::Test {
  // `limits`: those of the server's callers.
  void listen(const CallerLimits& limits) {
    auto socket = Socket::listen(context, {"127.0.0.1", 0}, limits_with(limits));
    port = socket->port();
    server = std::make_unique<HeartbeatSocket>(std::move(socket), std::chrono::hours(1), step);
  }
  // Returns a connection that sends nothing.
  Connection call() const {
    return connect_to({"127.0.0.1", port}, "the server", Deadline::after(std::chrono::seconds(60)));
  }

  Context context;
  std::atomic<std::int64_t> step{0};
  std::uint16_t port = 0;
  std::unique_ptr<HeartbeatSocket> server;
};

TEST_F(ABusyServer, KeepsACallerThatHasSentItsGreeting) {
  listen({.most = 1, .timeout = std::chrono::hours(1)});
  const auto worker = Socket::connect(context, {"127.0.0.1", port});
  await_link(*worker, LinkEvent::kConnected);
  EXPECT_TRUE(worker->send(numbered("", 0)));
  // The last descriptor is readable when the heartbeat thread has read the message.
  pollfd read{server->descriptors().back(), POLLIN, 0};
  ASSERT_EQ(poll(&read, 1, 60000), 1);
  // The oldest caller without a greeting is closed.
  const Connection first = call();
  const Connection second = call();
  EXPECT_TRUE(wait_ready(first.descriptor(), POLLRDHUP, Deadline::after(std::chrono::seconds(60))));
  const auto greeting = await_received(*server);
  ASSERT_TRUE(greeting);
  EXPECT_TRUE(server->send(numbered(greeting->peer, 3)));
  EXPECT_EQ(number_of(await_message(*worker, {})), 3);
  EXPECT_EQ(server->callers_without_greeting(), 1);
}

// What a peer sent last may say why it is silent.
TEST_F(ABusyServer, LosesNoPeerWhoseLastMessageItHasNotReceived) {
  listen({.timeout = std::chrono::hours(1)});
  const auto worker = Socket::connect(context, {"127.0.0.1", port});
  await_link(*worker, LinkEvent::kConnected);
  EXPECT_TRUE(worker->send(numbered("", 0)));
  const auto greeting = await_received(*server);
  ASSERT_TRUE(greeting);
  server->watch(greeting->peer, kTimeout, "");
  worker->send(envelope("", make_message(LeavingT())));
  // The last descriptor is readable when the heartbeat thread has read the message.
  pollfd read{server->descriptors().back(), POLLIN, 0};
  ASSERT_EQ(poll(&read, 1, 60000), 1);
  server->watch("a later peer", 2 * kTimeout, "");
  ASSERT_TRUE(wait_for(*server, [&] { return server->lost().contains("a later peer"); }));
  EXPECT_FALSE(server->lost().contains(greeting->peer));
  EXPECT_TRUE(server->receive());
  EXPECT_TRUE(server->lost().contains(greeting->peer));
}

TEST_F(ABusyServer, ClosesACallerThatSendsTooMuch) {
  listen({.timeout = std::chrono::hours(1), .most_bytes = 100000});
  const auto endless = Socket::connect(context, {"127.0.0.1", port});
  await_link(*endless, LinkEvent::kConnected);
  EXPECT_TRUE(endless->send(numbered("", 1, {std::vector<std::byte>(1000000)})));
  await_link(*endless, LinkEvent::kDisconnected);
}

}  // namespace
}  // namespace syncopate::ps::wire
