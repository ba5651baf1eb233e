#include "tests/ps/wire/socket_case.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <optional>
#include <utility>

#include "models/base/deadline.h"

namespace syncopate::ps::wire {

bool wait_until(const std::vector<Socket*>& sockets, const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  std::vector<pollfd> waiting;
  for (const Socket* socket : sockets) {
    for (const int descriptor : socket->descriptors()) waiting.push_back({descriptor, POLLIN, 0});
  }
  for (;;) {
    for (Socket* socket : sockets) socket->flush();
    if (condition()) return true;
    if (deadline.passed()) return false;
    poll(waiting.data(), waiting.size(), deadline.remaining_milliseconds());
  }
}

Envelope await_message(Socket& receiver, std::vector<Socket*> others) {
  std::optional<Envelope> arrived;
  others.push_back(&receiver);
  const bool came = wait_until(others, [&] {
    arrived = receiver.receive();
    return arrived.has_value();
  });
  EXPECT_TRUE(came) << "no message";
  return came ? std::move(*arrived) : Envelope{};
}

void await_link(Socket& dealer, LinkEvent event, std::vector<Socket*> others) {
  others.push_back(&dealer);
  EXPECT_TRUE(wait_until(others,
                         [&] {
                           const std::optional<LinkEvent> happened = dealer.link_event();
                           EXPECT_TRUE(!happened || *happened == event);
                           return happened.has_value();
                         }))
      << "no link event " << static_cast<int>(event);
}

Envelope numbered(std::string peer, std::int64_t number,
                  std::vector<std::vector<std::byte>> bytes) {
  HeartbeatT heartbeat;
  heartbeat.step = number;
  Envelope message = envelope(std::move(peer), make_message(std::move(heartbeat)));
  for (const auto& frame : bytes) message.frames.push_back(copied_frame(frame));
  return message;
}

std::int64_t number_of(const Envelope& message) {
  if (message.frames.empty()) return -1;
  const std::optional<MessageT> header = decode(bytes_in(message.frames.front()));
  return header && header->body.AsHeartbeat() != nullptr ? header->body.AsHeartbeat()->step : -1;
}

Line::Line(const SocketLimits& limits)
    : server(Socket::listen(context, {"127.0.0.1", 0}, limits)) {}

std::unique_ptr<Socket> Line::call() {
  auto client = Socket::connect(context, {"127.0.0.1", server->port()});
  await_link(*client, LinkEvent::kConnected, {server.get()});
  return client;
}

std::unique_ptr<Socket> Line::call_with_greeting() {
  auto client = Socket::connect(context, {"127.0.0.1", server->port()});
  await_link(*client, LinkEvent::kConnected);
  EXPECT_TRUE(client->send(numbered("", 0)));
  std::vector<pollfd> waiting;
  for (const Socket* socket : {client.get(), server.get()}) {
    for (const int descriptor : socket->descriptors()) waiting.push_back({descriptor, POLLIN, 0});
  }
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (!server->receive()) {
    EXPECT_FALSE(deadline.passed()) << "no greeting";
    if (deadline.passed()) break;
    client->flush();
    poll(waiting.data(), waiting.size(), 20);
  }
  return client;
}

std::string Line::routing_id_of(Socket& caller) {
  EXPECT_TRUE(caller.send(numbered("", 0)));
  return await_message(*server, {&caller}).peer;
}

}  // namespace syncopate::ps::wire
