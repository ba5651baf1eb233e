// Messages over a TCP or Unix-domain connection: frames with a type and a length, every wait with a
// deadline. Rendezvous, heartbeats and the set-up of the ring stand on it; bulk data uses the
// descriptor itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"
#include "ps/net/endpoint.h"
#include "ps/net/frame.h"
#include "ps/net/socket.h"

namespace syncopate {

// The socket is as prepare_tcp_socket() makes it. One thread may send while another one receives;
// no more than that. After a PeerError it is of no further use.
class Connection {
 public:
  Connection() = default;
  // `peer` is what every message begins with: "rank 0 at 127.0.0.1:4000".
  Connection(FileDescriptor socket, std::string peer);

  // Throws PeerError naming the peer: closed, reset, not taken by the deadline.
  void send(const Frame& frame, const Deadline& deadline);
  // Throws PeerError as send() does, and for bytes that are no frame of ours or longer than
  // kLongestPayload.
  Frame receive(const Deadline& deadline);

  // For poll() loops, which never wait. What has arrived completely; throws PeerError, but hands
  // out first what came before the end.
  std::optional<Frame> try_receive();
  // Behind what is queued already; nothing is sent yet.
  void queue(const Frame& frame);
  // Sends what the socket takes. Throws PeerError.
  void flush();
  bool has_unsent() const noexcept { return sent_ < unsent_.size(); }

  int descriptor() const noexcept { return socket_.get(); }
  const std::string& peer() const noexcept { return peer_; }
  void set_peer(std::string peer) { peer_ = std::move(peer); }
  // Of strangers, for a start; at most kLongestPayload.
  void limit_payload(std::uint32_t bytes) noexcept { reader_.limit_payload(bytes); }
  // The address of our own end, as the peer sees it: "10.0.0.7".
  std::string local_address() const { return syncopate::local_address(socket_.get()); }
  std::string remote_address() const { return syncopate::remote_address(socket_.get()); }
  // For bulk data: the socket leaves the connection. Nothing may be left unread or unsent.
  FileDescriptor release();

 private:
  bool read_some();  // false when nothing has arrived

  FileDescriptor socket_;
  std::string peer_;
  FrameReader reader_;
  std::string unsent_;
  std::size_t sent_ = 0;  // bytes of unsent_ that are gone already
};

class Listener {
 public:
  // Port 0: the system chooses. Host "", "0.0.0.0" or "::": every interface, IPv4 and IPv6; so too
  // for a name that means loopback here only (/etc/hosts likes to say so of a machine's own name).
  // Throws UsageError for a port in use or a host that is not this machine's, naming both and what
  // to try.
  explicit Listener(const Endpoint& endpoint);
  // A socket that somebody bound and handed to us listening (launch does); made close-on-exec.
  // Throws UsageError when it is no such thing.
  explicit Listener(FileDescriptor listening);

  std::uint16_t port() const;
  int descriptor() const noexcept { return socket_.get(); }
  // Nothing when the deadline passed. Throws FileError: no descriptors are left.
  std::optional<Connection> accept(const Deadline& deadline);
  FileDescriptor release() { return std::move(socket_); }

 private:
  FileDescriptor socket_;
};

// Tries every address of the host, again and again while that fails, until the deadline (looking
// up a name takes as long as the system takes). Throws PeerError naming `peer`, the endpoint and
// the last reason, UsageError for a host name that nobody knows for 10 s or until the deadline.
Connection connect_to(const Endpoint& endpoint, const std::string& peer, const Deadline& deadline);

}  // namespace syncopate
