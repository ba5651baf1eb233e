// ZeroMQ as we use it: sockets with one owner thread, nothing that blocks, nothing that is dropped
// in silence. Frames are received without a copy and sent from memory that a callback gives back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/net/endpoint.h"
#include "ps/wire/context.h"
#include "ps/wire/frame.h"

namespace syncopate::ps::wire {

struct SocketLimits {
  std::int64_t longest_frame = kLongestFrame;  // longer ones close the connection
  int most_frames = 16;                        // of a message; one with more is dropped
};

// What the connection of a DEALER does, as ZeroMQ's monitor tells.
enum class LinkEvent : std::uint8_t { kConnected, kDisconnected };

// One thread only.
class Socket {
 public:
  // Listens; ROUTER with ROUTER_MANDATORY and ROUTER_HANDOVER. `at` as for a Listener
  // (ps/net/connection.h): port 0 lets the system choose. Throws UsageError when the port is
  // taken, naming it.
  static std::unique_ptr<Socket> listen(Context& context, const Endpoint& at,
                                        const SocketLimits& limits = {});
  // The same on a socket that listens already (inherited from launch).
  static std::unique_ptr<Socket> listen(Context& context, FileDescriptor listening,
                                        const SocketLimits& limits = {});
  // DEALER: connects in the background, again and again, to whatever address the host's name has
  // at the time; an empty routing id: ZeroMQ makes one up. What is sent before the first
  // connection waits in our queue.
  // When a connection breaks, what it had not delivered is lost: in ZeroMQ, and in our queue. So
  // is what is sent until link_event() has told of it: whoever heard kDisconnected knows that
  // nothing older arrives by way of the next connection.
  static std::unique_ptr<Socket> connect(Context& context, const Endpoint& to,
                                         std::string routing_id, const SocketLimits& limits = {});
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  std::uint16_t port() const;  // of a listening one

  // Never waits: what the socket does not take now goes into a queue of ours, per peer, in order.
  // To a peer that is not there (any more) it is dropped; returns false then. False too on a
  // connection that broke, until link_event() has told of it.
  bool send(Envelope message);
  // Tries to send what is queued: call it when a descriptor is readable, and now and then.
  void flush();
  std::int64_t queued_bytes() const noexcept;

  // The next message, if one has arrived. Foreign ones (no header of ours, too many frames) are
  // counted, logged once per peer, and skipped.
  std::optional<Envelope> receive();
  std::optional<LinkEvent> link_event();  // DEALER; else always nothing
  std::int64_t foreign_messages() const noexcept;

  // For poll(2): readable when something may have happened; then call flush(), link_event() and
  // receive() until they have nothing. (ZMQ_FD is edge-triggered, and every call of ZeroMQ's can
  // swallow the edge; one of these is an alarm clock of ours that makes up for it.)
  std::vector<int> descriptors() const;

 private:
  struct State;
  explicit Socket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps::wire
