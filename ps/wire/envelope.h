// The messages that ZeroMQ sockets carry (zmq_socket.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ps/wire/context.h"
#include "ps/wire/message.h"

namespace syncopate::ps::wire {

// A whole message, as frames with the peer's routing id.
struct Envelope {
  // For a ROUTER the routing id of the sender or the receiver; unused for a DEALER.
  std::string peer;
  std::vector<zmq::message_t> frames;  // frames[0] is the header
  bool is_greeting = false;            // sent with a seal if the socket has a nonce
};
// Makes a message with a header frame only.
Envelope envelope(std::string peer, const MessageT& message);
// Returns whether the message opens a connection: a Hello or a DataHello.
bool is_greeting(const MessageT& message) noexcept;

// A message that was received, with its header decoded.
struct Received : Envelope {
  MessageT header;
  // False if the message is a greeting and its sender does not know the socket's nonce.
  bool is_of_job = true;
};

}  // namespace syncopate::ps::wire
