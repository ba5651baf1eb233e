// A ScriptedServer sends messages that a test scripts. It uses real sockets and serves one client;
// the test chooses when messages arrive and when connections break.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/client/client.h"
#include "tests/ps/wire/socket_case.h"

namespace syncopate::ps::testing {

class ScriptedServer {
  wire::Context context_;  // outlives the sockets below

 public:
  ScriptedServer();

  // Returns a client that has joined a job of one worker and this server. Each of its buckets has 8
  // elements.
  std::unique_ptr<Client> make_client(int buckets, bool initialises = true);

  // Returns the next message of type T on the socket; skips messages of other types.
  template <typename BodyT>
  BodyT await(wire::Socket& socket) {
    for (;;) {
      const wire::Envelope message = wire::await_message(socket, others_of(socket));
      if (message.frames.empty()) return {};
      const auto header = wire::decode(wire::bytes_in(message.frames.front()));
      if (header->body.type != wire::BodyUnionTraits<BodyT>::enum_value) continue;
      peer_of(socket) = message.peer;
      session_ = header->session;
      return *static_cast<const BodyT*>(header->body.value);
    }
  }
  // Sends a message to the peer of the last received message.
  template <typename BodyT>
  void send(wire::Socket& socket, BodyT body, const std::vector<float>& behind = {}) {
    wire::Envelope message = wire::envelope(peer_of(socket), wire::make_message(std::move(body)));
    if (!behind.empty()) {
      message.frames.push_back(wire::copied_frame(std::as_bytes(std::span(behind))));
    }
    socket.send(std::move(message));
  }
  // Return messages that server 0 sends as the given incarnation.
  wire::WelcomeT welcome(std::uint32_t incarnation) const;
  wire::RosterT roster(std::uint32_t incarnation) const;
  // Ends the control connection. Returns the Hello of the client's next connection, and answers it
  // after `before_answer`.
  wire::HelloT break_control(const std::function<void()>& before_answer = [] {});
  // Receives a DataHello from the client and answers it.
  wire::DataHelloT answer_data_hello();
  // Returns the endpoint of the control socket.
  const Endpoint& rendezvous() const noexcept { return rendezvous_; }
  // Returns the routing id of the client's data socket.
  const std::string& data_peer() const noexcept { return data_peer_; }
  // Returns the token that the last message of await() had.
  std::uint64_t session() const noexcept { return session_; }

  wire::DataWelcomeT data_welcome;  // the answer to DataHello
  // These are the options of the clients that make_client() returns.
  CompressionOptions compression;
  std::chrono::milliseconds answer_timeout = std::chrono::seconds(6);

  std::unique_ptr<wire::Socket> control;
  std::unique_ptr<wire::Socket> data;
  std::vector<float> values;  // the values that the worker reads into
  std::vector<float> gradients;

 private:
  std::vector<wire::Socket*> others_of(const wire::Socket& socket) const;
  std::string& peer_of(const wire::Socket& socket) {
    return &socket == control.get() ? control_peer_ : data_peer_;
  }
  void listen();

  FileDescriptor listening_;  // outlives the control socket, which uses it
  Endpoint rendezvous_;
  std::string control_peer_;
  std::string data_peer_;
  std::uint64_t session_ = 0;
};

}  // namespace syncopate::ps::testing
