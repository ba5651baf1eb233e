// The variables that horovodrun sets for its processes (its Gloo controller).
// Source: horovod/runner/gloo_run.py.
#include "models/base/errors.h"
#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/source_variables.h"

namespace syncopate {
namespace {

constexpr int kLastPort = 65535;

}  // namespace

std::optional<ClusterSpec> resolve_horovod(const ClusterFlags& /*unused*/,
                                           const Environment& environment, Notes& notes) {
  if (!has_all(environment, "Horovod", {"HOROVOD_RANK", "HOROVOD_SIZE"}, notes)) {
    return std::nullopt;
  }
  ClusterSpec spec;
  spec.index = number_of(environment, "HOROVOD_RANK", 0, kMostTasks, 0);
  spec.world_size = number_of(environment, "HOROVOD_SIZE", 1, kMostTasks, 1);
  require_below("HOROVOD_RANK", spec.index, "HOROVOD_SIZE", spec.world_size);
  spec.local_rank = number_of(environment, "HOROVOD_LOCAL_RANK", 0, kMostTasks, 0);
  spec.local_size =
      number_of(environment, "HOROVOD_LOCAL_SIZE", 1, kMostTasks, spec.local_rank + 1);
  require_below("HOROVOD_LOCAL_RANK", spec.local_rank, "HOROVOD_LOCAL_SIZE", spec.local_size);
  // Its own server has the port it names, on the host where horovodrun runs: rank 0's, when that is
  // the first of its hosts. As with torchrun the port after it is taken.
  const auto host = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_ADDR");
  const auto said_port = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT");
  if (spec.world_size > 1 && host && said_port) {
    const int port =
        number_of(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT", 1, kLastPort - 1, kLastPort - 1);
    spec.rendezvous = Endpoint{*host, static_cast<std::uint16_t>(port + 1)};
  }
  return spec;
}

}  // namespace syncopate
