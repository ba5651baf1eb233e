// What all stream sockets of ours have in common, and how their addresses read.
#pragma once

#include <string>
#include <string_view>

#include "models/base/deadline.h"

namespace syncopate {

// Non-blocking and close-on-exec; for TCP also no delay and, where both ends are on this machine,
// reno as congestion control (BBR's pacing costs 1.5 to 2.5 times on loopback). For a connected
// socket: what it cannot have it goes without.
void prepare_tcp_socket(int descriptor) noexcept;

// Until one of the poll(2) events, or an error or hang-up, is there. False when the deadline
// passed.
bool wait_ready(int descriptor, short events, const Deadline& deadline);

// "10.0.0.7", "fe80::1"; "" where there is none, as for Unix-domain sockets. An IPv4 address comes
// as such through an IPv6 socket too.
std::string local_address(int descriptor);
std::string remote_address(int descriptor);
bool is_loopback(std::string_view address) noexcept;

}  // namespace syncopate
