// Reads a network that PyTorch, Keras or another program wrote as an ONNX file, and turns its
// operators into operations of models/graph. Used by `syncopate convert` alone. In a build without
// protobuf, onnx_absent.cc is compiled instead of the other .cc files of this folder.
#pragma once

#include <filesystem>
#include <istream>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// The oldest and the newest opset that can be read. PyTorch 2.15 writes opsets up to 25.
inline constexpr std::int64_t kOldestOpset = 13;
inline constexpr std::int64_t kNewestOpset = 25;

struct OnnxWeights {
  std::string name;
  Shape shape;                // the shape in weights files, in PyTorch's order
  std::vector<float> values;  // all values are finite
};

struct OnnxNetwork {
  Graph graph;
  std::vector<OnnxWeights> weights;  // the parameters, then the state, in the order of the graph
  // The input's shape in the ONNX file, such as "[N, 3, 32, 32] as N, C, H, W".
  std::string input;
  // Files beside the ONNX file that have its tensors.
  std::vector<std::filesystem::path> other_files;
  // Differences from the ONNX file, such as a softmax that became a part of the loss; one sentence
  // each.
  std::vector<std::string> notes;
};

// Reads an ONNX file and the files beside it that have its tensors. Sizes are checked before memory
// is allocated. Throws FileError for a damaged file. Throws UsageError if the network has no
// counterpart in this program, with all unsupported operators and attributes and their nodes.
// Throws UnavailableError in a build without protobuf.
OnnxNetwork read_onnx_network(const std::filesystem::path& path);
// Like the function above, but reads the bytes of the ONNX file from a stream. path: the name of
// the file for messages; its folder has the other files.
OnnxNetwork read_onnx_network(const std::filesystem::path& path, std::istream& bytes);

}  // namespace syncopate
