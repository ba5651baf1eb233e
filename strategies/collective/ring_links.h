// Connects the ranks of the TCP ring: two connections from every rank to the next rank. Used once,
// when the ring is made.
#pragma once

#include <memory>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/net/link_forwarder.h"
#include "strategies/collective/collectives.h"

namespace syncopate {

// The connected, non-blocking sockets of one rank. Two are for the all-reduce (ring_all_reduce.h),
// two for small blocking operations (ring_messages.h).
struct RingLinks {
  FileDescriptor bulk_to_next;
  FileDescriptor bulk_from_previous;
  FileDescriptor small_to_next;
  FileDescriptor small_from_previous;
};

struct Ring {
  int size = 1;                  // number of ranks
  int first_rank = 0;            // rank of this task's first replica
  std::vector<RingLinks> links;  // per local rank; without sockets when size is 1
  // Forwards connections from other tasks through the emulated link; null if the link has no
  // limits. Must outlive the connections.
  std::shared_ptr<LinkForwarder> forwarder;
};

// Connects the ring. Every task must call it. Rejects, with a warning, a connection that does not
// prove that it knows the job's nonce. Throws PeerError if a task does not connect in time, or if
// the membership reports a failure.
Ring connect_ring(const CollectiveOptions& options);

}  // namespace syncopate
