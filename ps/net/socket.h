// Functions for stream sockets: options, waiting with a deadline, and addresses as text.
#pragma once

#include <string>
#include <string_view>

#include "models/base/deadline.h"

namespace syncopate {

// Prepares a connected socket: makes it non-blocking and close-on-exec. Sets TCP_NODELAY on a TCP
// socket and, where both ends are on this machine, reno as congestion control (BBR's pacing makes
// loopback 1.5 to 2.5 times slower). Ignores an option that the system refuses.
void prepare_tcp_socket(int descriptor) noexcept;

// Waits until one of the poll(2) `events`, an error or a hang-up occurs on the socket. Returns
// false if the deadline passes before.
bool wait_ready(int descriptor, short events, const Deadline& deadline);

// Return the address of one end of a connection as text, such as "10.0.0.7" or "fe80::1"; empty for
// a socket without addresses, such as a Unix-domain socket. An IPv4 address of an IPv6 socket is
// returned in IPv4 form.
std::string local_address(int descriptor);
std::string remote_address(int descriptor);
bool is_loopback(std::string_view address) noexcept;

}  // namespace syncopate
