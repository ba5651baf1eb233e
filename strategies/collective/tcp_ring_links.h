// The connections of the ring: from every rank to the one after it, two each. Made once, at start.
#pragma once

#include <memory>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/net/link_forwarder.h"
#include "strategies/collective/collectives.h"

namespace syncopate {

// Of one rank; connected, non-blocking sockets.
struct RingLinks {
  FileDescriptor bulk_to_next;
  FileDescriptor bulk_from_previous;
  FileDescriptor small_to_next;
  FileDescriptor small_from_previous;
};

struct Ring {
  int size = 1;
  int first_rank = 0;            // of this task
  std::vector<RingLinks> links;  // per local rank; empty descriptors when size is 1
  // What comes from other tasks comes through it, for as long as it lives; null: the link is plain.
  std::shared_ptr<LinkForwarder> forwarder;
};

// Every task calls it. Whoever calls without the job's nonce is turned away. Throws PeerError: a
// task did not connect in time, or the membership reports a failure.
Ring connect_ring(const CollectiveOptions& options);

}  // namespace syncopate
