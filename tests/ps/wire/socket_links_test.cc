// Connections that break and come back.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <thread>

#include "models/base/errors.h"
#include "ps/net/addresses.h"
#include "ps/net/connection.h"
#include "tests/ps/wire/socket_case.h"

namespace syncopate::ps::wire {
namespace {

Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

// ZeroMQ closes a socket in the background: its port is free a moment later.
std::unique_ptr<Socket> listen_again(Context& context, const Endpoint& at) {
  for (const Deadline deadline = soon();;) {
    try {
      return Socket::listen(context, at);
    } catch (const UsageError&) {
      if (deadline.passed()) throw;
      std::this_thread::yield();
    }
  }
}

// Nobody listens there now.
std::uint16_t free_port() { return Listener(Endpoint{"127.0.0.1", 0}).port(); }

TEST(AWorkerWhoseServerIsLost, HearsOfItAndOfItsReturn) {
  Line line;
  const Endpoint place{"127.0.0.1", line.server->port()};
  const auto worker = line.call("w0.1");
  for (int round = 0; round < 3; ++round) {
    line.server.reset();
    await_link(*worker, LinkEvent::kDisconnected);
    line.server = listen_again(line.context, place);
    await_link(*worker, LinkEvent::kConnected, {line.server.get()});
    EXPECT_TRUE(worker->send(numbered("", round)));
    EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), round);
  }
  EXPECT_EQ(worker->link_event(), std::nullopt);
}

TEST(AWorkerWhoseServerIsLost, SendsNothingUntilItHasHeardOfIt) {
  Line line;
  const Endpoint place{"127.0.0.1", line.server->port()};
  const auto worker = line.call("w0.1");
  line.server.reset();
  EXPECT_TRUE(wait_until({worker.get()}, [&] { return !worker->send(numbered("", 1)); }));
  EXPECT_EQ(worker->queued_bytes(), 0);
  line.server = listen_again(line.context, place);
  // Connected again, but the owner has not looked: what it sends was meant for the lost server.
  EXPECT_FALSE(worker->send(numbered("", 2)));
  await_link(*worker, LinkEvent::kDisconnected, {line.server.get()});
  EXPECT_TRUE(worker->send(numbered("", 3)));
  await_link(*worker, LinkEvent::kConnected, {line.server.get()});
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 3);
}

TEST(AWorkerThatComesBeforeItsServer, KeepsItsMessagesInOrder) {
  Context context;
  const Endpoint place{"127.0.0.1", free_port()};
  const auto worker = Socket::connect(context, place, "w0.1");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(worker->send(numbered("", i)));
  EXPECT_GT(worker->queued_bytes(), 0);
  const auto server = listen_again(context, place);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(number_of(await_message(*server, {worker.get()})), i);
  }
  EXPECT_EQ(worker->queued_bytes(), 0);
  await_link(*worker, LinkEvent::kConnected, {server.get()});
}

// ZeroMQ alone never calls again whoever once answered with something else than its protocol.
TEST(AWorkerThatMeetsAStrangerOnTheServersPort, ComesBackForTheServer) {
  Context context;
  auto wrong = std::make_unique<Listener>(Endpoint{"127.0.0.1", 0});
  const Endpoint place{"127.0.0.1", wrong->port()};
  const auto worker = Socket::connect(context, place, "w0.1");
  {
    const auto caller = wrong->accept(soon());
    ASSERT_TRUE(caller);
    const std::string text =
        std::string(10, '\xFF') +
        "\3 and then nothing that makes sense ......"
        ".......................................................................................";
    ASSERT_GT(::send(caller->descriptor(), text.data(), text.size(), MSG_NOSIGNAL), 0);
    // Until the worker has hung up.
    std::array<char, 1000> rest{};
    while (wait_ready(caller->descriptor(), POLLIN, soon()) &&
           recv(caller->descriptor(), rest.data(), rest.size(), 0) > 0) {
    }
  }
  wrong.reset();
  const auto server = listen_again(context, place);
  EXPECT_TRUE(worker->send(numbered("", 1)));
  EXPECT_EQ(number_of(await_message(*server, {worker.get()})), 1);
}

// By turns IPv4 and IPv6: here IPv6 by name, as IPv4 has failed, or IPv4 again after that.
TEST(AHostsName, IsLookedUpInBothFamilies) {
  for (const char* address : {"::1", "127.0.0.1"}) {
    Context context;
    std::uint16_t port = 0;
    try {
      port = Listener(Endpoint{address, 0}).port();  // nobody listens there now
    } catch (const UsageError& error) {
      GTEST_SKIP() << "no IPv6 here: " << error.what();
    }
    std::optional<Addresses> looked_up;
    try {
      looked_up.emplace(look_up({"localhost", port}, 0));
    } catch (const UsageError& error) {
      GTEST_SKIP() << "no /etc/hosts here: " << error.what();
    }
    const auto& found = *looked_up;
    bool is_address_of_name = false;
    for (const addrinfo* a = found.list.get(); a != nullptr; a = a->ai_next) {
      is_address_of_name |= a->ai_family == (address[0] == ':' ? AF_INET6 : AF_INET);
    }
    if (!is_address_of_name) continue;
    const auto worker = Socket::connect(context, {"localhost", port}, "w0.1");
    // Long enough for three turns: pauses of 20, 40, 80 and 160 ms, with ZeroMQ's jitter.
    const Deadline later = Deadline::after(std::chrono::milliseconds(800));
    wait_until({worker.get()}, [&] { return later.passed() || worker->link_event(); });
    const auto server = listen_again(context, {address, port});
    worker->send(numbered("", 2));
    EXPECT_EQ(number_of(await_message(*server, {worker.get()})), 2) << address;
  }
}

TEST(AnAddressOfVersionSix, IsCalled) {
  Context context;
  std::unique_ptr<Socket> server;
  try {
    server = Socket::listen(context, {"::1", 0});
  } catch (const UsageError& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  const auto worker = Socket::connect(context, {"::1", server->port()}, "w0.1");
  worker->send(numbered("", 1));
  EXPECT_EQ(number_of(await_message(*server, {worker.get()})), 1);
}

// A restarted worker's id names its incarnation; should two ever have the same, the later one
// counts.
TEST(ASecondWorkerOfTheSameName, TakesThePlaceOfTheFirst) {
  Line line;
  auto first = line.call("w0.1");
  const auto second = line.call("w0.1");
  first.reset();
  EXPECT_TRUE(line.server->send(numbered("w0.1", 1)));
  EXPECT_EQ(number_of(await_message(*second, {line.server.get()})), 1);
}

}  // namespace
}  // namespace syncopate::ps::wire
