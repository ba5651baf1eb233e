// Messages over a TCP or Unix-domain connection. Each message is one frame with a type and a
// length; every wait has a deadline. The rendezvous, heartbeats and the set-up of the ring use
// these connections. Bulk data uses the socket's descriptor directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "ps/net/endpoint.h"
#include "ps/net/socket.h"

namespace syncopate {

// A frame. On the wire: u32 "SYNC", u16 protocol version, u16 type, u32 payload length, payload;
// numbers are little-endian. A peer that uses another protocol is recognised by the first eight
// bytes. The two ends of a connection agree on the meaning of types.
struct Frame {
  std::uint16_t type = 0;
  std::string payload;  // the content: any bytes
};

inline constexpr std::uint32_t kLongestPayload = 64U << 20;
inline constexpr std::uint16_t kProtocolVersion = 2;

// Thrown for a peer that uses another version of the protocol.
class ProtocolVersionError : public PeerError {
  using PeerError::PeerError;
};

// Encodes a frame. Throws InternalError for a payload longer than kLongestPayload.
std::string encode_frame(const Frame& frame);

// FrameReader splits a stream of bytes that arrives in pieces into frames. One thread only.
class FrameReader {
 public:
  void append(std::string_view bytes);

  // Returns the next complete frame, if there is one. Throws PeerError for bytes that are not a
  // frame, and for a frame with a longer payload than limit_payload() allows. The message of the
  // error begins with `peer`.
  std::optional<Frame> next(std::string_view peer);

  bool empty() const noexcept { return begin_ == bytes_.size(); }
  void limit_payload(std::uint32_t bytes) noexcept { longest_ = bytes; }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // bytes before this offset were returned as frames
  std::uint32_t longest_ = kLongestPayload;
};

// A connection. The socket has the options of prepare_tcp_socket(). One thread may send while
// another receives. After a PeerError the connection cannot be used any more.
class Connection {
 public:
  Connection() = default;
  // Every error message of the connection begins with `peer`, such as "rank 0 at 127.0.0.1:4000".
  Connection(FileDescriptor socket, std::string peer);

  // Sends a frame. Throws PeerError, which names the peer, if the connection is closed or reset, or
  // if the peer does not accept the bytes by the deadline.
  void send(const Frame& frame, const Deadline& deadline);
  // Receives a frame. Throws PeerError like send(), and also for bytes that are not a frame and for
  // a payload longer than limit_payload() allows.
  Frame receive(const Deadline& deadline);

  // try_receive(), queue() and flush() never block; poll() loops call them. try_receive() returns
  // the next frame that has arrived completely, if there is one. Throws PeerError like receive(),
  // but only after it has returned all frames that arrived before.
  std::optional<Frame> try_receive();
  // Appends the frame to the connection's unsent bytes; flush() sends them.
  void queue(const Frame& frame);
  // Sends as many of the unsent bytes as the socket takes. Throws PeerError.
  void flush();
  bool has_unsent() const noexcept { return sent_ < unsent_.size(); }

  int descriptor() const noexcept { return socket_.get(); }
  const std::string& peer() const noexcept { return peer_; }
  void set_peer(std::string peer) { peer_ = std::move(peer); }
  // Sets the limit in bytes for the payload of received frames, at most kLongestPayload. A lower
  // limit is used for peers that have not identified themselves yet.
  void limit_payload(std::uint32_t bytes) noexcept { reader_.limit_payload(bytes); }
  // Returns the address of the local end of the connection, such as "10.0.0.7".
  std::string local_address() const { return syncopate::local_address(socket_.get()); }
  std::string remote_address() const { return syncopate::remote_address(socket_.get()); }
  // Moves the socket out of the connection, for bulk data. Before the call, all frames that have
  // arrived must have been returned, and all queued bytes sent.
  FileDescriptor release();

 private:
  bool read_some();  // returns false if no bytes have arrived

  FileDescriptor socket_;
  std::string peer_;
  FrameReader reader_;
  std::string unsent_;
  std::size_t sent_ = 0;  // bytes of unsent_ that have been sent
};

class Listener {
 public:
  // Listens at the endpoint. Port 0 lets the system choose. Listens at every interface, IPv4 and
  // IPv6, if the host is "", "0.0.0.0", "::" or a name that this machine resolves to loopback.
  // (/etc/hosts often maps a machine's own name to loopback.) Throws UsageError for a port in use
  // or a host that is not this machine. The message names host and port, and says what to try.
  explicit Listener(const Endpoint& endpoint);
  // Takes a socket that already listens, such as one that launch has passed to this process. Makes
  // it close-on-exec. Throws UsageError when the descriptor is not a listening socket.
  explicit Listener(FileDescriptor listening);

  std::uint16_t port() const;
  int descriptor() const noexcept { return socket_.get(); }
  // Accepts a caller; returns nullopt if none connects by the deadline. Throws FileError if no
  // descriptors are left.
  std::optional<Connection> accept(const Deadline& deadline);
  FileDescriptor release() { return std::move(socket_); }

 private:
  FileDescriptor socket_;
};

// Connects to the endpoint. Tries every address of the host, repeatedly, until an address accepts
// or the deadline passes; only the look-up of a name may take longer. Throws PeerError, which names
// `peer`, the endpoint and the last reason. Throws UsageError for a host name that stays unknown
// for kUnknownHostTimeout or until the deadline.
Connection connect_to(const Endpoint& endpoint, const std::string& peer, const Deadline& deadline);

// Tries once, for at most a second, to connect to the endpoint. Returns why that failed, such as
// "Network is unreachable"; "" if it succeeded.
std::string why_unreachable(const Endpoint& endpoint);

}  // namespace syncopate
