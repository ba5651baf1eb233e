// Reads --rank, --world-size, --servers, --rendezvous and --nonce. Complete flags outrank every
// launcher; flags without --rank complete what a launcher says.
#include <fmt/format.h>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"

namespace syncopate {
namespace {

bool names_port(const std::string& rendezvous) {
  return rendezvous.find(':') != std::string::npos && !rendezvous.ends_with(']');
}

void replace_rendezvous(ClusterSpec& spec, const std::string& text) {
  const std::uint16_t derived_port = spec.rendezvous.derived_port;
  const bool is_complete = names_port(text) || derived_port == 0;
  spec.rendezvous = {
      .endpoint = parse_endpoint(is_complete ? text : fmt::format("{}:{}", text, derived_port),
                                 "--rendezvous"),
      .derived_port = derived_port};
  // The places are compared only to make sure where the first task runs.
  spec.worker_places.clear();
  spec.server_places.clear();
}

void require_same(const char* flag, const std::optional<int>& given, int found,
                  const std::string& source) {
  if (!given || *given == found) return;
  throw UsageError(
      fmt::format("{} {}: {} says {}; leave it out, or give all of --rank, --world-size and "
                  "--rendezvous",
                  flag, *given, source, found));
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
    // Job scripts give --world-size so that a task that lost its launcher's variables stops here
    // instead of training alone.
    const bool is_lost = flags.world_size && !flags.rank;
    throw UsageError(
        fmt::format("--rank, --world-size and --rendezvous belong together: missing {}; give all "
                    "three, or none to let the environment decide{}",
                    missing,
                    is_lost ? " (no variable of a launcher says which task this is: not started "
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
  // A task that is started again finds its job by the nonce.
  spec.restarts = servers > 0 && !flags.nonce.empty();
  if (!flags.rendezvous.empty())
    spec.rendezvous.endpoint = parse_endpoint(flags.rendezvous, "--rendezvous");
  return spec;
}

void complete(ClusterSpec& spec, const ClusterFlags& flags) {
  if (flags.rank || spec.source == "none") return;
  require_same("--world-size", flags.world_size, spec.world_size, spec.source);
  require_same("--servers", flags.servers, spec.num_servers, spec.source);
  if (flags.role && *flags.role != spec.role) {
    throw UsageError(
        fmt::format("this task is started as a {}, but {} says that it is {}; start it as what it "
                    "is, or give all of its numbers by flags",
                    name(*flags.role), spec.source, place_in_job(spec)));
  }
  if (!flags.nonce.empty()) spec.nonce = flags.nonce;
  if (!flags.rendezvous.empty()) replace_rendezvous(spec, flags.rendezvous);
}

}  // namespace syncopate
