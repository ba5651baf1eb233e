// --rank, --world-size, --servers, --rendezvous, --nonce: what the user says outranks what anybody
// else set.
#include "models/base/errors.h"
#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/source_variables.h"

namespace syncopate {

std::optional<ClusterSpec> resolve_flags(const ClusterFlags& flags, const Environment& /*unused*/,
                                         Notes& /*unused*/) {
  const bool has_rendezvous = !flags.rendezvous.empty();
  const bool has_nonce = !flags.nonce.empty();
  if (!flags.rank && !flags.world_size && !flags.servers && !has_rendezvous && !has_nonce) {
    return std::nullopt;
  }
  const int servers =
      flags.servers ? parse_number("--servers", std::to_string(*flags.servers), 0, kMostTasks) : 0;

  std::string missing;
  const auto require = [&](bool given, const char* flag) {
    if (!given) missing += (missing.empty() ? "" : " and ") + std::string(flag);
  };
  require(flags.rank.has_value(), "--rank");
  require(flags.world_size.has_value(), "--world-size");
  require(has_rendezvous || (flags.world_size == 1 && servers == 0), "--rendezvous HOST:PORT");
  if (!missing.empty()) {
    throw UsageError("--rank, --world-size and --rendezvous belong together: missing " + missing +
                     "; give all three, or none to let the environment decide");
  }
  ClusterSpec spec;
  spec.world_size = parse_number("--world-size", std::to_string(*flags.world_size), 1, kMostTasks);
  spec.index = parse_number("--rank", std::to_string(*flags.rank), 0, kMostTasks);
  require_below("--rank", spec.index, "--world-size", spec.world_size);
  spec.num_servers = servers;
  spec.nonce = flags.nonce;
  // A job with a name is found again by whoever is started anew.
  spec.restarts = servers > 0 && has_nonce;
  if (has_rendezvous) spec.rendezvous = parse_endpoint(flags.rendezvous, "--rendezvous");
  return spec;
}

}  // namespace syncopate
