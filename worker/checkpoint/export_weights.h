// Exports the weights of a checkpoint for other programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {

// Reads the parameters and running statistics of a checkpoint, but not the optimizer's slots.
// Tensors are f32, with PyTorch's names, shapes and order. If the checkpoint has a moving average
// of the parameters (info.has_average), the parameters are this average.
class TrainedTensors {
 public:
  // Opens the checkpoint, and reads it as a whole to verify its checksum. Throws FileError if the
  // file is damaged or has the weights of another network than `graph`.
  TrainedTensors(const CheckpointInfo& info, const Graph& graph);

  // Returns names and shapes of the parameters, and after them names and shapes of the state. Both
  // have the order of the graph.
  const std::vector<TensorEntry>& entries() const noexcept { return entries_; }
  std::vector<float> read(std::size_t i) const;  // reads entry `i`; throws FileError

 private:
  SafetensorsReader file_;
  std::vector<TensorEntry> entries_;
  std::vector<const TensorEntry*> found_;  // the tensor in the file for each element of entries_
};

// Describes the normalisation of the network's input, which is not part of the weights: "(x / 255 -
// mean) / stddev of samples x with mean [0.5] and stddev [0.5]".
std::string describe_normalization(const Graph& graph);

// Throws UsageError if `out` is the checkpoint itself or a folder, and so cannot be the file of an
// export.
void require_export_file(const CheckpointInfo& info, const std::filesystem::path& out);

// Writes the tensors to a safetensors file that PyTorch's load_state_dict() accepts with
// strict=True. The metadata entry "input" has the normalisation. Replaces `out` atomically. Throws
// FileError if the checkpoint is damaged or the disk is full.
void export_weights(const TrainedTensors& tensors, const Graph& graph,
                    const std::filesystem::path& out);

}  // namespace syncopate
