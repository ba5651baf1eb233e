#include "bench/harness/local_cluster.h"

#include "ps/net/connection.h"
#include "ps/net/endpoint.h"

namespace syncopate::bench {

std::unique_ptr<Membership> join_local_cluster(RankGroup& group) {
  ClusterSpec spec{.source = "flags",
                   .index = group.rank(),
                   .world_size = group.size(),
                   .local_rank = group.rank(),
                   .local_size = group.size()};
  Endpoint rendezvous{loopback_address(), 0};
  FileDescriptor listening;
  if (group.rank() == 0) {
    Listener listener(rendezvous);
    rendezvous.port = listener.port();
    listening = listener.release();
  }
  rendezvous.port =
      static_cast<std::uint16_t>(std::stoi(group.share(std::to_string(rendezvous.port))));
  spec.rendezvous.endpoint = rendezvous;
  spec.rendezvous.descriptor = listening.release();  // join_cluster takes ownership
  return join_cluster(spec, {.num_replicas = 1, .rendezvous_timeout = std::chrono::seconds(30)});
}

}  // namespace syncopate::bench
