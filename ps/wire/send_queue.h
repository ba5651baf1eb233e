// The messages that a ZeroMQ socket still has to send. Part of Socket (zmq_socket.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ps/wire/context.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps::wire {

// Sends messages through a ZeroMQ socket. Messages that ZeroMQ does not accept yet wait in a queue
// per peer. Used by the socket's thread only; the socket must outlive the queue.
class SendQueue {
 public:
  // `is_router` says whether the socket is a ROUTER. Every message on a ROUTER begins with the
  // routing id of the message's peer.
  SendQueue(zmq::socket_ref socket, bool is_router) : socket_(socket), is_router_(is_router) {}

  // Sets whether the queue is held. While it is held, no message is sent: all messages wait in it.
  void hold(bool held) noexcept { is_held_ = held; }

  // Sends or queues the message. The messages to one peer stay in order. Returns false, and drops
  // the message, if the peer is not connected.
  bool send(Envelope message);
  // Tries to send the messages in the queue to their peers.
  void flush();
  void clear();

  bool empty() const noexcept { return waiting_.empty(); }
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  enum class Outcome : std::uint8_t { kSent, kNotNow, kNoPeer };
  using Messages = std::deque<std::vector<zmq::message_t>>;

  Outcome send_frame(zmq::message_t& frame, bool more);
  Outcome send_now(const std::string& peer, std::vector<zmq::message_t>& frames);
  // Sends a peer's queued messages in order until a message cannot be sent. Returns the outcome of
  // the last attempt.
  Outcome drain(const std::string& peer, Messages& messages);
  void append(const std::string& peer, std::vector<zmq::message_t> frames);
  void drop(std::map<std::string, Messages>::iterator entry);

  zmq::socket_ref socket_;
  const bool is_router_;
  bool is_held_ = false;
  std::map<std::string, Messages> waiting_;  // messages by peer; no entry is empty
  std::int64_t bytes_ = 0;
};

}  // namespace syncopate::ps::wire
