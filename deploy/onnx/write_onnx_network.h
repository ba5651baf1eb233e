// Writes a network with its weights as an ONNX file, for onnxruntime and other programs. Used by
// `syncopate export` alone. Without protobuf onnx_absent.cc takes the place of the other file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// Returns the values of a parameter, or of the state with the index `i - parameters.size()`, in the
// order of files.
using ReadTensor = std::function<std::vector<float>(std::size_t i)>;

// The network computes as in evaluation, and its output "logits" is the input of the loss: [N,
// classes], [N, classes, H, W] for label maps, [N, K] for numbers. Inputs are f32, [N, C, H, W] or
// [N, F], already normalised. metadata: texts that the file keeps by their names. Replaces the file
// atomically. Throws FileError; UsageError for a network of 2 GiB, which no ONNX file holds;
// UnavailableError without protobuf; what `read` throws.
void write_onnx_network(const Graph& graph, const ReadTensor& read,
                        const std::map<std::string, std::string>& metadata,
                        const std::filesystem::path& path);

}  // namespace syncopate
