// Passes file descriptors from one process to another on the same machine, through a Unix-domain
// socket with a name in the abstract namespace: such a name needs no file and ends with its
// process. Every program in the network namespace can connect to the name, so the sender must check
// the caller (is_of_our_user(), and a nonce).
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

// Connects to the abstract `name`. Returns an empty descriptor when no process of this user listens
// there. The socket is non-blocking. Throws FileError when no descriptors are left.
FileDescriptor call_name(const std::string& name);

// Returns whether the process at the other end runs as this process's user, as reported by the
// kernel. An abstract name has no permissions that could check this.
bool is_of_our_user(int socket);

// Sends the file descriptor to the caller. Throws PeerError.
void send_descriptor(int socket, int descriptor);
// Sends a refusal: receive_descriptor() then returns no descriptor. The peer may be gone already.
void refuse_descriptor(int socket) noexcept;
// Receives a file descriptor; call it when the socket is readable. Returns an empty descriptor when
// the peer refused. `peer` begins error messages. Throws PeerError when the peer has closed the
// connection, FileError when this process has reached its limit on descriptors.
FileDescriptor receive_descriptor(int socket, std::string_view peer);

// Passes one descriptor to the callers of a listening Unix-domain socket. A caller receives the
// descriptor if the caller runs as this process's user and its first frame is accepted. Callers
// that send nothing do not delay the others. One thread only.
class DescriptorServer {
 public:
  // Returns whether a caller that sent this frame may have the file descriptor.
  using Accepts = std::function<bool(const Frame& request)>;

  // listening: from listen_at_name(). longest_request: the most payload bytes of a request.
  // timeout: for each caller, from when it was accepted to its request.
  DescriptorServer(FileDescriptor listening, std::uint32_t longest_request,
                   std::chrono::nanoseconds timeout);

  // For a poll(2) loop: adds the sockets to watch, and returns the longest time to wait in
  // milliseconds, -1 for no limit.
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
