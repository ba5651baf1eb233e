// ZeroMQ sockets that never block and never drop a message silently. One thread owns each socket.
// Frames (context.h) are received without a copy. They are sent from borrowed memory; a callback
// reports when the memory is no longer used.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/net/endpoint.h"
#include "ps/wire/context.h"
#include "ps/wire/envelope.h"
#include "ps/wire/message.h"
#include "ps/wire/unknown_callers.h"

namespace syncopate::ps::wire {

struct SocketLimits {
  std::int64_t longest_frame = kLongestFrame;  // a longer frame closes the connection
  int most_frames = 16;                        // a message with more frames is dropped
  CallerLimits callers;                        // for a listening socket
  // The job's nonce; "" for a job without one. When a connection opens, both ends prove that they
  // know the nonce (ps/net/greeting.h), in the greetings Hello and DataHello. If `nonce` is
  // nullopt, as in tests of the socket itself, connections open without a proof.
  std::optional<std::string> nonce;
  // For a listening socket without a nonce: returns whether a message is a greeting of this job. A
  // listening socket keeps connections that have sent a greeting. It closes other connections when
  // they exceed `callers`.
  std::function<bool(const MessageT&)> is_greeting;
};

// Returns limits for a listening socket to which this number of tasks may connect at the same time.
inline SocketLimits limits_for_tasks(int tasks, std::string nonce) {
  SocketLimits limits;
  limits.nonce = std::move(nonce);
  limits.callers.most += 2 * static_cast<std::size_t>(tasks);
  return limits;
}

// What happens to the connection of a DEALER, as reported by ZeroMQ's monitor.
// If there is a nonce, kConnected is reported once the other end has sent its challenge.
enum class LinkEvent : std::uint8_t { kConnected, kDisconnected };

// A ZeroMQ socket, ROUTER or DEALER. Used by one thread only.
class Socket {
 public:
  // Returns a ROUTER that listens at `at`, with ROUTER_MANDATORY set; port 0 lets the system choose
  // (see Listener in ps/net/connection.h). Every connection has a unique routing id, chosen by
  // ZeroMQ or by the connecting side. No connecting side can take the routing id of an open
  // connection. Throws UsageError naming a port that is in use.
  static std::unique_ptr<Socket> listen(Context& context, const Endpoint& at,
                                        const SocketLimits& limits = {});
  // Returns a ROUTER on a descriptor that listens already, such as one inherited from launch.
  static std::unique_ptr<Socket> listen(Context& context, FileDescriptor listening,
                                        const SocketLimits& limits = {});
  // Returns a DEALER that connects in the background. After a failure it connects again, to the
  // addresses that the host name has at that time. Messages sent before the first connection wait
  // in a queue.
  // When a connection breaks, all messages that were not delivered are lost, in ZeroMQ and in the
  // queue. Messages sent until link_event() has returned kDisconnected are lost too. So after that
  // event the caller knows that no older message arrives through the next connection.
  static std::unique_ptr<Socket> connect(Context& context, const Endpoint& to,
                                         const SocketLimits& limits = {});
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  std::uint16_t port() const;  // of a listening socket

  // Sends a message. Never blocks: messages that ZeroMQ does not accept yet wait in a queue per
  // peer, in order. Returns false, and drops the message, when the peer is not connected, or when
  // the connection broke and link_event() has not reported it yet.
  bool send(Envelope message);
  // Tries to send queued messages. Must be called when a descriptor is readable, and periodically.
  void flush();
  std::int64_t queued_bytes() const noexcept;

  // Returns the next message, if one has arrived. Messages without a valid header or with too many
  // frames are counted, logged once per connection, and skipped.
  std::optional<Received> receive();
  // Logs, once per connection, that the owner drops a message because of `problem`.
  void log_dropped(Envelope& message, const std::string& problem);
  // Returns the number of connections that have ended without a greeting of this job.
  std::int64_t callers_without_greeting() const noexcept;
  std::optional<LinkEvent> link_event();  // always empty for a ROUTER
  // For a DEALER with a nonce: returns whether the other end sent no challenge over the present
  // connection or, if there is no connection, over the last one. The other end may then be another
  // version of this program.
  bool lacks_challenge() const noexcept;
  std::int64_t foreign_messages() const noexcept;

  // Returns the socket's descriptors for poll(2). When one is readable, call flush(), link_event()
  // and receive() until they return nothing. (ZMQ_FD is edge-triggered, and any call into ZeroMQ
  // can consume the edge; the last descriptor is a timer that compensates for lost edges.)
  std::vector<int> descriptors() const;
  // Returns the descriptor, one of descriptors(), that is readable when a connection opens or
  // closes.
  int link_descriptor() const;
  // Returns the time until flush() is due, if no descriptor is readable before.
  std::optional<std::chrono::nanoseconds> due() const;

 private:
  struct State;
  explicit Socket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps::wire
