// Tests connections that break and are made again, and callers that forge a routing id.
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "ps/net/socket.h"
#include "tests/ps/wire/socket_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps::wire {
namespace {

using namespace std::string_view_literals;

Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

// Listens at a port again, and retries, because ZeroMQ closes the previous socket in the
// background.
std::unique_ptr<Socket> listen_again(Context& context, const Endpoint& at) {
  for (const Deadline deadline = soon();;) {
    try {
      return Socket::listen(context, at, for_any_caller());
    } catch (const UsageError&) {
      if (deadline.passed()) throw;
      std::this_thread::yield();
    }
  }
}

// Returns an endpoint where no socket listens.
std::uint16_t free_port() { return Listener(Endpoint{"127.0.0.1", 0}).port(); }

TEST(WorkerOfALostServer, IsNotifiedOfTheLossAndOfTheReturn) {
  Line line;
  const Endpoint place{"127.0.0.1", line.server->port()};
  const auto worker = line.call();
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

TEST(WorkerOfALostServer, SendsNothingUntilItIsNotifiedOfTheLoss) {
  Line line;
  const Endpoint place{"127.0.0.1", line.server->port()};
  const auto worker = line.call();
  line.server.reset();
  EXPECT_TRUE(wait_until({worker.get()}, [&] { return !worker->send(numbered("", 1)); }));
  EXPECT_EQ(worker->queued_bytes(), 0);
  line.server = listen_again(line.context, place);
  // The worker's socket is connected again, but the worker does not know yet: a message that it
  // sends is meant for the lost server and must be refused.
  EXPECT_FALSE(worker->send(numbered("", 2)));
  await_link(*worker, LinkEvent::kDisconnected, {line.server.get()});
  EXPECT_TRUE(worker->send(numbered("", 3)));
  await_link(*worker, LinkEvent::kConnected, {line.server.get()});
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 3);
}

TEST(WorkerBeforeItsServer, KeepsItsMessagesInOrder) {
  Context context;
  const Endpoint place{"127.0.0.1", free_port()};
  const auto worker = Socket::connect(context, place);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(worker->send(numbered("", i)));
  EXPECT_GT(worker->queued_bytes(), 0);
  const auto server = listen_again(context, place);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(number_of(await_message(*server, {worker.get()})), i);
  }
  EXPECT_EQ(worker->queued_bytes(), 0);
  await_link(*worker, LinkEvent::kConnected, {server.get()});
}

// The socket connects again after a peer answered with another protocol; ZeroMQ alone never does.
TEST(WorkerThatReachedAnotherProgram, ConnectsAgainToTheServer) {
  Context context;
  auto wrong = std::make_unique<Listener>(Endpoint{"127.0.0.1", 0});
  const Endpoint place{"127.0.0.1", wrong->port()};
  const auto worker = Socket::connect(context, place);
  {
    const auto caller = wrong->accept(soon());
    ASSERT_TRUE(caller);
    const std::string text =
        std::string(10, '\xFF') +
        "\3 and then nothing that makes sense ......"
        ".......................................................................................";
    ASSERT_GT(::send(caller->descriptor(), text.data(), text.size(), MSG_NOSIGNAL), 0);
    // Reads from the connection until the worker has closed it.
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

// A socket tries the address families of a host name in turn: here IPv6 after IPv4 has failed, and
// then IPv4 again.
TEST(HostName, IsLookedUpInBothAddressFamilies) {
  for (const char* address : {"::1", "127.0.0.1"}) {
    Context context;
    std::uint16_t port = 0;
    try {
      port = Listener(Endpoint{address, 0}).port();  // no socket listens at this port now
    } catch (const UsageError& error) {
      GTEST_SKIP() << "this machine has no IPv6: " << error.what();
    }
    std::optional<Addresses> looked_up;
    try {
      looked_up.emplace(look_up({"localhost", port}, 0));
    } catch (const UsageError& error) {
      GTEST_SKIP() << "this machine has no /etc/hosts: " << error.what();
    }
    const auto& found = *looked_up;
    bool is_address_of_name = false;
    for (const addrinfo* a = found.list.get(); a != nullptr; a = a->ai_next) {
      is_address_of_name |= a->ai_family == (address[0] == ':' ? AF_INET6 : AF_INET);
    }
    if (!is_address_of_name) continue;
    const auto worker = Socket::connect(context, {"localhost", port});
    // 800 ms are enough for three attempts: pauses of 20, 40, 80 and 160 ms, with ZeroMQ's jitter.
    const Deadline later = Deadline::after(std::chrono::milliseconds(800));
    wait_until({worker.get()}, [&] { return later.passed() || worker->link_event(); });
    const auto server = listen_again(context, {address, port});
    worker->send(numbered("", 2));
    EXPECT_EQ(number_of(await_message(*server, {worker.get()})), 2) << address;
  }
}

TEST(Ipv6Address, IsConnectedTo) {
  Context context;
  std::unique_ptr<Socket> server;
  try {
    server = Socket::listen(context, {"::1", 0}, for_any_caller());
  } catch (const UsageError& error) {
    GTEST_SKIP() << "this machine has no IPv6: " << error.what();
  }
  const auto worker = Socket::connect(context, {"::1", server->port()});
  worker->send(numbered("", 1));
  EXPECT_EQ(number_of(await_message(*server, {worker.get()})), 1);
}

// A ForgingCaller is a DEALER made of a plain socket, which chooses its routing id. Source:
// ZMTP 3.0 (rfc.zeromq.org/spec/23), NULL mechanism.
class ForgingCaller {
 public:
  explicit ForgingCaller(Socket& server)
      : connection_(connect_to({"127.0.0.1", server.port()}, "the server", soon())) {
    send_bytes("\xFF\0\0\0\0\0\0\0\1\x7F\3\0NULL"sv);
    send_bytes(std::string(64 - 16, '\0'));
    read_until(server, 64);
  }

  void send_routing_id(const std::string& name) {
    std::string ready("\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0"sv);
    ready += static_cast<char>(name.size());
    ready += name;
    send_bytes(std::string("\4") + static_cast<char>(ready.size()) + ready);
  }

  void send(const Envelope& message) {
    const auto header = bytes_in(message.frames.front());
    ASSERT_LT(header.size(), 256U);
    send_bytes(std::string("\0", 1) + static_cast<char>(header.size()) +
               std::string(reinterpret_cast<const char*>(header.data()), header.size()));
  }

  // Returns what the peer has sent so far.
  const std::string& received(Socket& server) {
    server.flush();
    // Ends at the last byte, also where the server has closed the connection.
    char byte = 0;
    while (recv(connection_.descriptor(), &byte, 1, MSG_DONTWAIT) == 1) received_ += byte;
    return received_;
  }

 private:
  void send_bytes(std::string_view bytes) {
    ASSERT_EQ(::send(connection_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              std::ssize(bytes));
  }

  // Reads from the peer until this many bytes have arrived in total.
  void read_until(Socket& server, std::size_t bytes) {
    const Deadline deadline = soon();
    while (received_.size() < bytes && !deadline.passed()) {
      server.flush();
      char byte = 0;
      if (recv(connection_.descriptor(), &byte, 1, MSG_DONTWAIT) == 1) {
        received_ += byte;
      } else {
        wait_ready(connection_.descriptor(), POLLIN, Deadline::after(std::chrono::milliseconds(5)));
      }
    }
  }

  Connection connection_;
  std::string received_;
};

std::string header_of(const Envelope& message) {
  const auto header = bytes_in(message.frames.front());
  return {reinterpret_cast<const char*>(header.data()), header.size()};
}

// A caller that knows the routing id of a connection gets nothing that is meant for it.
TEST(CallerWithAnothersRoutingId, TakesNothingFromThatConnection) {
  Line line;
  const auto worker = line.call();
  const std::string id = line.routing_id_of(*worker);
  ForgingCaller stranger(*line.server);
  stranger.send_routing_id(id);
  stranger.send(numbered("", 2));
  for (int i = 3; i < 20; ++i) {
    EXPECT_TRUE(worker->send(numbered("", i)));
    const Envelope message = await_message(*line.server, {worker.get()});
    EXPECT_EQ(number_of(message), i);
    EXPECT_EQ(message.peer, id);
    EXPECT_TRUE(line.server->send(numbered(id, 100 + i)));
    EXPECT_EQ(number_of(await_message(*worker, {line.server.get()})), 100 + i);
    EXPECT_FALSE(contains(stranger.received(*line.server), header_of(numbered("", 100 + i))));
  }
}

}  // namespace
}  // namespace syncopate::ps::wire
