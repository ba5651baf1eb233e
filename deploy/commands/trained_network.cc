#include "deploy/commands/trained_network.h"

#include <fmt/format.h>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

constexpr std::int64_t kBucketBytes = std::int64_t{8} << 20;

}  // namespace

CheckpointInfo find_checkpoint(const std::filesystem::path& file_or_folder) {
  CheckpointInfo info = read_checkpoint_info(file_or_folder);
  if (info.path != file_or_folder) {
    log(LogLevel::kInfo, "the newest checkpoint of the folder is taken, " + info.path.string());
  }
  return info;
}

Graph require_recorded_network(const CheckpointInfo& info) {
  std::optional<Graph> recorded = recorded_network(info);
  if (recorded) return *std::move(recorded);
  throw UsageError(fmt::format(
      "checkpoint {} does not record its network; resume it with this program for one step, which "
      "writes a checkpoint that does",
      info.path.string()));
}

TrainedNetwork::TrainedNetwork(const CheckpointInfo& info, const Graph& network)
    : graph(network),
      arena(graph.parameter_layout(), plan_buckets(graph.parameter_layout(), kBucketBytes)),
      state(graph.state_layout()) {
  load_checkpoint(info.path, graph, {arena.values(), {}, state.values}, "", false);
  if (info.has_average) load_average(info.path, graph, arena.values());
  arena.bump_all_versions();
}

}  // namespace syncopate
