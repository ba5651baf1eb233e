// Passes file descriptors from one process to another on the same machine, through a Unix-domain
// socket with a name in the abstract namespace. Such a name needs no file, and disappears when the
// process that listens at it ends. Every program in the network namespace can connect to the name,
// so the sender must check the caller (is_of_our_user(), and a nonce).
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"
#include "ps/net/caller_listener.h"
#include "ps/net/connection.h"

namespace syncopate {

// Returns a random socket name: "syncopate-" and 128 random bits.
std::string random_socket_name();

// Returns a socket that listens at the abstract `name`, for a Listener. Throws FileError.
FileDescriptor listen_at_name(const std::string& name);

// Connects to the abstract `name`. Returns an empty descriptor if no process of this user listens
// at the name. The socket is non-blocking. Throws FileError if no descriptors are left.
FileDescriptor call_name(const std::string& name);

// Returns whether, according to the kernel, the process at the other end runs as the user of this
// process. This check is needed because an abstract name has no permissions.
bool is_of_our_user(int socket);

// Sends the file descriptor to the caller. Throws PeerError.
void send_descriptor(int socket, int descriptor);
// Sends a refusal: receive_descriptor() at the other end returns an empty descriptor. Does nothing
// if the peer is already gone.
void refuse_descriptor(int socket) noexcept;
// Receives a file descriptor. Must be called when the socket is readable. Returns an empty
// descriptor if the peer refused. Error messages begin with `peer`. Throws PeerError if the peer
// has closed the connection. Throws FileError if this process has reached its limit on descriptors.
FileDescriptor receive_descriptor(int socket, std::string_view peer);

// Passes one descriptor to the callers of a listening Unix-domain socket. A caller receives the
// descriptor if the caller runs as this process's user and its first frame is accepted. Callers
// that send nothing do not delay other callers. One thread only.
class DescriptorServer {
 public:
  // A function that returns whether a caller that sent this frame may have the file descriptor.
  using Accepts = std::function<bool(const Frame& request)>;

  // Serves the callers of the socket `listening`, which listen_at_name() has returned.
  // `longest_request` is the most payload bytes of a request. `timeout` is the longest time between
  // the connection of a caller and its request.
  DescriptorServer(FileDescriptor listening, std::uint32_t longest_request,
                   std::chrono::nanoseconds timeout);

  // For a poll(2) loop: add_to() adds the sockets to watch. poll_milliseconds() returns the longest
  // time that poll() may wait, in milliseconds; -1 for no limit.
  void add_to(std::vector<pollfd>& sockets) const;
  int poll_milliseconds() const;

  // Accepts new callers, and answers each caller after its request has arrived: sends `descriptor`,
  // or a refusal, which is logged. Never blocks.
  void answer(int descriptor, const Accepts& accepts);

 private:
  struct Caller {
    Connection connection;
    Deadline deadline;
  };

  void accept();

  CallerListener listener_;
  std::uint32_t longest_request_;
  std::chrono::nanoseconds timeout_;
  std::vector<Caller> callers_;  // callers, in the order of their connections
};

}  // namespace syncopate
