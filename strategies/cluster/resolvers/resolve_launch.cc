// Reads the variables that `syncopate launch` sets for the tasks it starts.
#include <fmt/format.h>

#include <array>
#include <sstream>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"

namespace syncopate {
namespace {

constexpr std::array kRoles = {Role::kWorker, Role::kServer, Role::kEvaluator};

Role parse_role(const std::string& text) {
  for (const Role role : kRoles) {
    if (text == name(role)) return role;
  }
  throw UsageError("SYNCOPATE_ROLE=" + text + ": expected worker, server or evaluator");
}

// Parses the list of the workers that start late, such as "2,4".
std::vector<int> late_workers_in(const std::string& text, const ClusterSpec& spec) {
  std::vector<int> late;
  std::istringstream numbers(text);
  for (std::string number; std::getline(numbers, number, ',');) {
    const int worker = parse_number<int>(number).value_or(-1);
    if (worker < 0 || worker >= spec.world_size) {
      throw UsageError(
          fmt::format("SYNCOPATE_LATE={}: expected workers below SYNCOPATE_WORKERS={}, such as 2,4",
                      text, spec.world_size));
    }
    late.push_back(worker);
  }
  return late;
}

}  // namespace

std::optional<ClusterSpec> resolve_launch(const ClusterFlags& /*unused*/,
                                          const Environment& environment, Notes& notes) {
  if (!has_all(environment, "launch", {"SYNCOPATE_ROLE", "SYNCOPATE_INDEX", "SYNCOPATE_WORKERS"},
               notes)) {
    return std::nullopt;
  }
  ClusterSpec spec;
  spec.role = parse_role(*filled(environment, "SYNCOPATE_ROLE"));
  spec.index = number_of(environment, "SYNCOPATE_INDEX", 0, kMostTasks, 0);
  spec.world_size = number_of(environment, "SYNCOPATE_WORKERS", 1, kMostTasks, 1);
  spec.num_servers = number_of(environment, "SYNCOPATE_SERVERS", 0, kMostTasks, 0);
  if (spec.role == Role::kWorker) {
    require_below("SYNCOPATE_INDEX", spec.index, "SYNCOPATE_WORKERS", spec.world_size);
  }
  if (spec.role == Role::kServer) {
    require_below("SYNCOPATE_INDEX", spec.index, "SYNCOPATE_SERVERS", spec.num_servers);
  }
  spec.has_local_rank = true;
  spec.local_rank = spec.index;
  spec.local_size = number_of(environment, "SYNCOPATE_LOCAL_SIZE", 1, kMostTasks, spec.world_size);
  spec.is_bound = number_of(environment, "SYNCOPATE_BOUND", 0, 1, 0) == 1;
  const std::optional<std::string> rendezvous = filled(environment, "SYNCOPATE_RENDEZVOUS");
  if (rendezvous) {
    spec.rendezvous.endpoint = parse_endpoint(*rendezvous, "SYNCOPATE_RENDEZVOUS");
  } else if (spec.world_size + spec.num_servers > 1) {
    const bool has_servers = spec.num_servers > 0;
    throw UsageError(fmt::format(
        "SYNCOPATE_RENDEZVOUS is not set: expected HOST:PORT of {}{}; start the tasks "
        "with syncopate launch, which sets it",
        has_servers ? "server 0, since SYNCOPATE_SERVERS=" : "worker 0, since SYNCOPATE_WORKERS=",
        has_servers ? spec.num_servers : spec.world_size));
  }
  spec.restarts = number_of(environment, "SYNCOPATE_RESTARTS", 0, 1, 0) == 1;
  spec.late_workers = late_workers_in(filled(environment, "SYNCOPATE_LATE").value_or(""), spec);
  // Descriptors 0, 1 and 2 are the standard streams, so launch passes higher ones.
  const auto descriptor_of = [&](const char* variable) {
    return number_of(environment, variable, 3, 1 << 20, -1);
  };
  if (spec.hosts_rendezvous())
    spec.rendezvous.descriptor = descriptor_of("SYNCOPATE_RENDEZVOUS_FD");
  spec.rendezvous.met_descriptor = descriptor_of("SYNCOPATE_MET_FD");
  return spec;
}

}  // namespace syncopate
