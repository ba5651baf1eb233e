// Shard 0 as a test plays it, over real sockets, to a client that runs on threads of its own: what
// arrives when, and connections that break.
#pragma once

#include <gtest/gtest.h>

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

  // A client of a job of one worker and this server, with buckets of 8 elements, as many as asked
  // for. Returns when it has met us.
  std::unique_ptr<Client> meet(int buckets, bool initialises = true);

  // The next such message on the socket, from whomever; others are skipped.
  template <typename BodyT>
  BodyT await(wire::Socket& socket) {
    for (;;) {
      const wire::Envelope message = wire::await_message(socket, others_of(socket));
      if (message.frames.empty()) return {};
      const auto header = wire::decode(message.frames.front().bytes());
      if (header->body.type != wire::BodyUnionTraits<BodyT>::enum_value) continue;
      peer_of(socket) = message.peer;
      return *static_cast<const BodyT*>(header->body.value);
    }
  }
  // To whom was heard last.
  template <typename BodyT>
  void say(wire::Socket& socket, BodyT body, const std::vector<float>& behind = {}) {
    wire::Envelope message = wire::envelope(peer_of(socket), wire::make_message(std::move(body)));
    if (!behind.empty()) {
      message.frames.push_back(wire::Frame::copy_of(std::as_bytes(std::span(behind))));
    }
    socket.send(std::move(message));
  }
  // As incarnation `incarnation` of server 0.
  wire::WelcomeT welcome(std::uint32_t incarnation) const;
  wire::RosterT roster(std::uint32_t incarnation) const;
  // The control connection ends and the client calls again; returns its Hello, answered.
  wire::HelloT break_control();
  // The client greets the shard, and is welcome.
  wire::DataHelloT meet_data();
  // The name of the socket through which it did.
  const std::string& data_peer() const noexcept { return data_peer_; }

  wire::DataWelcomeT data_welcome;                                      // with which it is met
  CompressionOptions compression;                                       // the client's
  std::chrono::milliseconds answer_patience = std::chrono::seconds(6);  // the client's

  std::unique_ptr<wire::Socket> control;
  std::unique_ptr<wire::Socket> data;
  std::vector<float> values;  // the worker's memory
  std::vector<float> gradients;

 private:
  std::vector<wire::Socket*> others_of(const wire::Socket& socket) const;
  std::string& peer_of(const wire::Socket& socket) {
    return &socket == control.get() ? control_peer_ : data_peer_;
  }
  void listen();

  FileDescriptor listening_;  // of control; outlives its sockets
  Endpoint rendezvous_;
  std::string control_peer_;
  std::string data_peer_;
};

}  // namespace syncopate::ps::testing
