// The weights of a checkpoint for other programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {

// The parameters and running statistics of a checkpoint, without the optimizer's slots: f32, with
// PyTorch's names, shapes and order. If the run kept a moving average of its parameters
// (info.has_average), the average takes their place.
class TrainedTensors {
 public:
  // Reads the whole file once. Throws FileError if it is damaged or is not of this network.
  TrainedTensors(const CheckpointInfo& info, const Graph& graph);

  // The parameters, then the state, in the order of the graph.
  const std::vector<TensorEntry>& entries() const noexcept { return entries_; }
  std::vector<float> read(std::size_t i) const;  // throws FileError

 private:
  SafetensorsReader file_;
  std::vector<TensorEntry> entries_;
  std::vector<const TensorEntry*> found_;  // in the file, by index of entries_
};

// Returns the normalisation of the network's input, which no weight contains, such as "(x / 255 -
// mean) / stddev of samples x with mean [0.5] and stddev [0.5]".
std::string describe_normalization(const Graph& graph);

// Throws UsageError if an export of this checkpoint cannot be written to `out`: the checkpoint
// itself, or a folder.
void require_export_file(const CheckpointInfo& info, const std::filesystem::path& out);

// Writes the tensors to a safetensors file that load_state_dict() takes with strict=True. The
// metadata "input" has the normalisation. Replaces `out` atomically. Throws FileError (checkpoint
// damaged, disk full).
void export_weights(const TrainedTensors& tensors, const Graph& graph,
                    const std::filesystem::path& out);

}  // namespace syncopate
