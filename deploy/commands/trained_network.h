// A network with the weights of a checkpoint, on the CPU. Used by commands that do not train.
#pragma once

#include <filesystem>
#include <memory>

#include "models/backend/backend.h"
#include "worker/checkpoint/checkpoint.h"

namespace syncopate {

// Reads the metadata of the checkpoint that --checkpoint names. For a folder, reads its newest
// checkpoint and logs the name of that checkpoint. Throws what read_checkpoint_info() throws.
CheckpointInfo find_checkpoint(const std::filesystem::path& file_or_folder);

// A network with the values and running statistics of a checkpoint. If the checkpoint has a moving
// average of the values, the values are this average.
struct TrainedNetwork {
  // Loads the checkpoint; copies `network`. Throws what load_checkpoint() throws.
  TrainedNetwork(const CheckpointInfo& info, const Graph& network);
  TrainedNetwork(const TrainedNetwork&) = delete;
  TrainedNetwork& operator=(const TrainedNetwork&) = delete;

  Graph graph;
  ParameterArena arena;
  StateBlock state;
};

}  // namespace syncopate
