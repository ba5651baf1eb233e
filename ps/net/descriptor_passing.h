// Passes file descriptors from one process to another on the same machine, through a Unix-domain
// socket with a name in the abstract namespace: such a name needs no file and ends with its
// process. Every program in the network namespace can connect to the name, so the sender must check
// the caller (is_of_our_user(), and a nonce).
#pragma once

#include <string>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Returns "syncopate-" and 128 random bits.
std::string random_socket_name();

// Returns a socket that listens at `name`, for Listener (connection.h). Throws FileError.
FileDescriptor listen_at_name(const std::string& name);

// Connects to `name`. Returns an empty descriptor when no process of this user listens there. The
// socket is non-blocking. Throws FileError when no descriptors are left.
FileDescriptor call_name(const std::string& name);

// Whether the process at the other end runs as this process's user, as reported by the kernel. An
// abstract name has no permissions that could check this.
bool is_of_our_user(int socket);

// Sends the descriptor to the caller. Throws PeerError.
void send_descriptor(int socket, int descriptor);
// Sends a refusal: receive_descriptor() returns an empty descriptor. The peer may be gone already.
void refuse_descriptor(int socket) noexcept;
// Receives a descriptor; call it when the socket is readable. Returns an empty descriptor when the
// peer refused. `peer` begins error messages. Throws PeerError when the peer has closed the
// connection, FileError when this process has reached its limit on descriptors.
FileDescriptor receive_descriptor(int socket, std::string_view peer);

}  // namespace syncopate
