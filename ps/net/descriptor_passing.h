// File descriptors that one process hands to another one of this machine: a Unix-domain socket with
// a name of the abstract namespace, which needs no file and ends with its process. Every program
// of the host (of the network namespace) may call that name: who hands over checks who asks.
#pragma once

#include <string>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// "syncopate-" and 128 random bits: nobody else has it.
std::string random_socket_name();

// Listens at `name`; for Listener (connection.h). Throws FileError.
FileDescriptor listen_at_name(const std::string& name);

// Nothing when nobody listens at `name` here, or another user does. Non-blocking.
// Throws FileError: no descriptors are left.
FileDescriptor call_name(const std::string& name);

// An abstract name has no permissions: the kernel says who is at the other end.
bool is_of_our_user(int socket);

// To one who asked. Throws PeerError.
void send_descriptor(int socket, int descriptor);
// To one who asked and is given nothing. The peer may be gone already.
void refuse_descriptor(int socket) noexcept;
// Call it when the socket is readable. Nothing when it was refused.
// peer: what messages begin with. Throws PeerError when the peer has closed, FileError when this
// process may not have another descriptor.
FileDescriptor receive_descriptor(int socket, std::string_view peer);

}  // namespace syncopate
