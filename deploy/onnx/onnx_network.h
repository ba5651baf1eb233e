// Reads a network that PyTorch, Keras or another program wrote as an ONNX file, and turns its
// operators into operations of models/graph. Used by `syncopate convert` alone. Without protobuf
// onnx_absent.cc takes the place of the other files.
#pragma once

#include <filesystem>
#include <istream>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// The opsets that are known: 25 is the newest that PyTorch 2.15 writes.
inline constexpr std::int64_t kOldestOpset = 13;
inline constexpr std::int64_t kNewestOpset = 25;

struct OnnxWeights {
  std::string name;
  Shape shape;                // in files, as PyTorch has it
  std::vector<float> values;  // finite
};

struct OnnxNetwork {
  Graph graph;
  std::vector<OnnxWeights> weights;  // the parameters, then the state, in the order of the graph
  // The input's shape in the ONNX file, such as "[N, 3, 32, 32] as N, C, H, W".
  std::string input;
  std::vector<std::filesystem::path> other_files;  // that hold stored tensors
  // What differs from the ONNX file, such as a softmax that the loss contains; a sentence each.
  std::vector<std::string> notes;
};

// Reads the file and the files beside it that hold its tensors. Sizes are checked before memory is
// allocated for them. Throws FileError for a damaged file; UsageError for a network that has no
// counterpart here, with all operators and attributes that are missing and the nodes that have
// them; UnavailableError without protobuf.
OnnxNetwork read_onnx_network(const std::filesystem::path& path);
// Reads the file's bytes from a stream. path: for messages, and the folder of other files.
OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::istream& bytes);

}  // namespace syncopate
