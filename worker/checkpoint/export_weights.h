// Writes the weights of a checkpoint for other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "worker/checkpoint/checkpoint.h"

namespace syncopate {

struct ExportedWeights {
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;  // elements of all parameters
  // What the network does to a value of its input first, which no weight contains. Also in the
  // file's metadata, as "input".
  std::string normalization;
};

// Writes the parameters and running statistics of a checkpoint, without the optimizer's slots, to a
// safetensors file: f32, with PyTorch's names, shapes and order, so that load_state_dict() takes
// them with strict=True. If the run kept a moving average of its parameters (info.has_average), the
// average is written. Replaces `out` atomically. Throws FileError (checkpoint damaged, disk full)
// and UsageError if `out` is the checkpoint itself.
ExportedWeights export_weights(const CheckpointInfo& info, const Graph& graph,
                               const std::filesystem::path& out);

}  // namespace syncopate
