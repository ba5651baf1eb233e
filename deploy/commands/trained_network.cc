#include "deploy/commands/trained_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBucketBytes = std::int64_t{8} << 20;

// Names the checkpoint before a damaged one.
CheckpointInfo read_intact(const fs::path& file_or_folder) {
  try {
    return read_checkpoint_info(file_or_folder);
  } catch (const DamagedFileError& error) {
    const fs::path path = file_or_newest_in(file_or_folder);
    const std::vector<fs::path> all =
        checkpoints_in(path.has_parent_path() ? path.parent_path() : ".");
    const auto damaged = std::ranges::find(all, path.filename(), &fs::path::filename);
    if (damaged == all.end()) throw;
    throw FileError(error.fault() + (damaged + 1 == all.end()
                                         ? "; there is no older one in its folder"
                                         : "; try the older one, " + (damaged + 1)->string()));
  }
}

}  // namespace

CheckpointInfo find_checkpoint(const std::filesystem::path& file_or_folder) {
  if (const fs::path weights = foreign_weights_at(file_or_folder); !weights.empty()) {
    throw UsageError(fmt::format(
        "{}: expected a checkpoint of syncopate train, found weights without their network; train "
        "from them: syncopate train --model NET --init-from {} --checkpoint-dir DIR",
        file_or_folder.string(), weights.string()));
  }
  CheckpointInfo info = read_intact(file_or_folder);
  if (info.path != file_or_folder) {
    log(LogLevel::kInfo, "the newest checkpoint of the folder is taken, " + info.path.string());
  }
  return info;
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
