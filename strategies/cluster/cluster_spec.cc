#include "strategies/cluster/cluster_spec.h"

#include <fmt/format.h>

namespace syncopate {

std::string_view name(Role role) noexcept {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kServer:
      return "server";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

std::string describe(const Place& place) {
  return fmt::format("node {}, local rank {}", place.node, place.local_rank);
}

std::string place_in_job(const ClusterSpec& spec) {
  switch (spec.role) {
    case Role::kWorker:
      return fmt::format("rank {} of {}", spec.index, spec.world_size);
    case Role::kServer:
      return fmt::format("server {} of {}", spec.index, spec.num_servers);
    case Role::kEvaluator:
      return fmt::format("evaluator {}", spec.index);
  }
  return "";
}

std::string contradiction(const ClusterSpec& spec, Role role, int index, const Place& reported) {
  const std::vector<Place>& places =
      role == Role::kServer ? spec.server_places : spec.worker_places;
  if (static_cast<std::size_t>(index) >= places.size() || reported.node.empty()) return "";
  const Place& expected = places[static_cast<std::size_t>(index)];
  if (expected == reported || expected.is_assumed) return "";
  return fmt::format(
      "{} {} runs on {}, but by {}'s variables it is on {}; start the tasks with srun "
      "--distribution=block, or give --rendezvous HOST, the host of rank 0 or, where there are "
      "servers, of server 0",
      role == Role::kServer ? "server" : "rank", index, describe(reported), spec.source,
      describe(expected));
}

}  // namespace syncopate
