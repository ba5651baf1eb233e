// --rank, --world-size, --servers, --rendezvous, --nonce: what the user says outranks what anybody
// else set, and what the user says in part completes it.
#include "models/base/errors.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/source_variables.h"

namespace syncopate {
namespace {

bool has_port(const std::string& rendezvous) {
  return rendezvous.find(':') != std::string::npos && !rendezvous.ends_with(']');
}

void meet_elsewhere(ClusterSpec& spec, const std::string& rendezvous) {
  if (has_port(rendezvous) || spec.derived_port == 0) {
    spec.rendezvous = parse_endpoint(rendezvous, "--rendezvous");
  } else {
    spec.rendezvous =
        parse_endpoint(rendezvous + ":" + std::to_string(spec.derived_port), "--rendezvous");
  }
  spec.is_derived = false;
  spec.rendezvous_descriptor = -1;
  spec.other_host = "";
  // Only needed to know where the first task runs.
  spec.worker_places.clear();
  spec.server_places.clear();
}

void require_same(const char* flag, const std::optional<int>& said, int found,
                  const std::string& source) {
  if (!said || *said == found) return;
  throw UsageError(std::string(flag) + " " + std::to_string(*said) + ": " + source + " says " +
                   std::to_string(found) +
                   "; leave it out, or give all of --rank, --world-size and --rendezvous");
}

}  // namespace

void require_all_or_none(const ClusterFlags& flags) {
  const bool has_rendezvous = !flags.rendezvous.empty();
  if (!flags.rank && !flags.world_size && !flags.servers && !has_rendezvous &&
      flags.nonce.empty()) {
    return;
  }
  const int servers = flags.servers.value_or(0);
  std::string missing;
  const auto require = [&](bool given, const char* flag) {
    if (!given) missing += (missing.empty() ? "" : " and ") + std::string(flag);
  };
  require(flags.rank.has_value(), "--rank");
  require(flags.world_size.has_value(), "--world-size");
  require(has_rendezvous || (flags.world_size == 1 && servers == 0), "--rendezvous HOST:PORT");
  if (!missing.empty()) {
    // Job scripts say how many there are, so that tasks do not take themselves for the only ones.
    const bool is_lost = flags.world_size && !flags.rank;
    throw UsageError("--rank, --world-size and --rendezvous belong together: missing " + missing +
                     "; give all three, or none to let the environment decide" +
                     (is_lost ? " (no variable of a launcher says which task this is: not started "
                                "by srun or mpirun? A container drops their variables under "
                                "--cleanenv and --containall)"
                              : ""));
  }
}

std::optional<ClusterSpec> resolve_flags(const ClusterFlags& flags, const Environment& /*unused*/,
                                         Notes& /*unused*/) {
  if (!flags.rank) return std::nullopt;
  const int servers =
      flags.servers ? parse_number("--servers", std::to_string(*flags.servers), 0, kMostTasks) : 0;
  require_all_or_none(flags);
  ClusterSpec spec;
  spec.world_size = parse_number("--world-size", std::to_string(*flags.world_size), 1, kMostTasks);
  spec.index = parse_number("--rank", std::to_string(*flags.rank), 0, kMostTasks);
  require_below("--rank", spec.index, "--world-size", spec.world_size);
  spec.num_servers = servers;
  spec.nonce = flags.nonce;
  // A job with a name is found again by whoever is started anew.
  spec.restarts = servers > 0 && !flags.nonce.empty();
  if (!flags.rendezvous.empty()) spec.rendezvous = parse_endpoint(flags.rendezvous, "--rendezvous");
  return spec;
}

void complete(ClusterSpec& spec, const ClusterFlags& flags) {
  if (flags.rank || spec.source == "none") return;
  require_same("--world-size", flags.world_size, spec.world_size, spec.source);
  require_same("--servers", flags.servers, spec.num_servers, spec.source);
  if (flags.role && *flags.role != spec.role) {
    throw UsageError("this task is started as a " + std::string(name(*flags.role)) + ", but " +
                     spec.source + " says that it is " + place_in_job(spec) +
                     "; start it as what it is, or give all of its numbers by flags");
  }
  if (!flags.nonce.empty()) spec.nonce = flags.nonce;
  if (!flags.rendezvous.empty()) meet_elsewhere(spec, flags.rendezvous);
}

}  // namespace syncopate
