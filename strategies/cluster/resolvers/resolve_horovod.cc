// Reads the variables that horovodrun sets for its processes (its Gloo controller).
// Source: horovod/runner/gloo_run.py.
#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"

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
  // The named port belongs to Horovod's own server, on the host where horovodrun runs, which is
  // rank 0's host when it is the first of the job's hosts. Rank 0 listens at the port after it.
  const auto host = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_ADDR");
  const auto port_text = filled(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT");
  if (spec->world_size > 1 && host && port_text) {
    const int port =
        number_of(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT", 1, kLastPort - 1, kLastPort - 1);
    spec->rendezvous.endpoint = Endpoint{*host, static_cast<std::uint16_t>(port + 1)};
  }
  return spec;
}

}  // namespace syncopate
