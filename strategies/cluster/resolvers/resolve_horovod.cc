// The variables that horovodrun sets for its processes (its Gloo controller).
// Source: horovod/runner/gloo_run.py.
#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_numbers.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/source_variables.h"

namespace syncopate {
namespace {

constexpr int kLastPort = 65535;

}  // namespace

std::optional<ClusterSpec> resolve_horovod(const ClusterFlags& /*unused*/,
                                           const Environment& environment, Notes& notes) {
  std::optional<ClusterSpec> spec = read_numbers(environment, "Horovod",
                                                 {.rank = "HOROVOD_RANK",
                                                  .size = "HOROVOD_SIZE",
                                                  .local_rank = "HOROVOD_LOCAL_RANK",
                                                  .local_size = "HOROVOD_LOCAL_SIZE"},
                                                 notes);
  if (!spec) return std::nullopt;
  // Its own server has the port it names, on the host where horovodrun runs: rank 0's, when that is
  // the first of its hosts. As with torchrun the port after it is taken.
  const auto host = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_ADDR");
  const auto said_port = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT");
  if (spec->world_size > 1 && host && said_port) {
    const int port =
        number_of(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT", 1, kLastPort - 1, kLastPort - 1);
    spec->rendezvous = Endpoint{*host, static_cast<std::uint16_t>(port + 1)};
  }
  return spec;
}

}  // namespace syncopate
