// A network with the weights of a checkpoint, on the CPU. Used by the commands that only compute
// with it.
#pragma once

#include <filesystem>
#include <memory>

#include "models/backend/backend.h"
#include "worker/checkpoint/checkpoint.h"

namespace syncopate {

// Reads the description of the checkpoint that --checkpoint names. For a folder, takes its newest
// checkpoint and names it in a log line. Throws what read_checkpoint_info() throws.
CheckpointInfo find_checkpoint(const std::filesystem::path& file_or_folder);

// The values and the running statistics of a checkpoint; the moving average of the values, if the
// run kept one.
struct TrainedNetwork {
  // Throws what load_checkpoint() throws. `network` is copied.
  TrainedNetwork(const CheckpointInfo& info, const Graph& network);
  TrainedNetwork(const TrainedNetwork&) = delete;
  TrainedNetwork& operator=(const TrainedNetwork&) = delete;

  Graph graph;
  ParameterArena arena;
  StateBlock state;
};

}  // namespace syncopate
