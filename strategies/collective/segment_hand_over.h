// One file descriptor in the hands of all tasks of a host: rank 0's task gives it to the others
// over a Unix-domain socket. The socket has a name that every program of the host may call, so that
// only tasks of this job and this user are given anything.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "models/base/file_descriptor.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// Every task calls. Gives what `make` returns at rank 0's task, where alone it is called, and a
// duplicate at the others; nothing, and then at every task, unless all reach rank 0's socket.
// layout: what the task will use the descriptor as, for comparison and messages.
// patience: from when all tasks have called.
// Throws UsageError, the same at every task, when the layouts differ; PeerError.
FileDescriptor hand_to_all(Membership& membership, const std::string& layout,
                           const std::function<FileDescriptor()>& make,
                           std::chrono::nanoseconds patience);

}  // namespace syncopate
