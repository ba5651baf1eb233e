// Writes a network with its weights as an ONNX file, for onnxruntime and other programs. Used by
// `syncopate export` alone. In a build without protobuf, onnx_absent.cc is compiled instead of
// write_onnx_network.cc.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// A function that returns the values of tensor `i` of the network, with the elements in the order
// of weights files. Tensor `i` is Graph::parameters[i], or for i >= parameters.size() it is
// Graph::state[i - parameters.size()].
using ReadTensor = std::function<std::vector<float>(std::size_t i)>;

// Writes a network as an ONNX file. The file computes what the network computes in evaluation,
// which differs from training in batch norm and dropout. The output "logits" of the file is the
// input of the loss: [N, classes] for classes, [N, classes, H, W] for label maps, [N, K] for
// numbers. The inputs of the file are f32, [N, C, H, W] or [N, F], already normalised. read:
// returns the weights. metadata: texts by name, which are stored in the file. Replaces the file
// atomically. Throws UsageError for a network of 2 GiB or more, which an ONNX file cannot hold.
// Throws UnavailableError in a build without protobuf. Also throws FileError, and what `read`
// throws.
void write_onnx_network(const Graph& graph, const ReadTensor& read,
                        const std::map<std::string, std::string>& metadata,
                        const std::filesystem::path& path);

}  // namespace syncopate
