// A network as text: JSON with a node per operation. Checkpoints keep it on one line, so that their
// network can be built again without the flags of the run. A network file is the same text in a
// form that users write: the data give its input and its classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/graph/graph.h"
#include "models/graph/network_input.h"

namespace syncopate {

// Returns {"name": ..., "nodes": [{"op": "conv2d", "name": "conv1", "inputs": [0], ...}, ...]} on
// one line. The text holds all that the graph holds; shapes and parameters follow from the nodes.
std::string to_text(const Graph& graph);

// Whether a network file names the shape of its input, so that other data are refused.
enum class InputShape : std::uint8_t { kOfData, kFixed };

// Returns a graph as a network file, a line per node. "inputs" is left out where a node reads the
// node before it. The layer that gives the classes has "features": "classes".
std::string to_network_file(const Graph& graph, InputShape input_shape = InputShape::kOfData);

// Builds the graph of a text of to_text(). Throws UsageError naming the node for text in another
// form, unknown operations and sizes out of range, and ShapeError as GraphBuilder does.
Graph parse_graph(std::string_view text);

// Builds the graph of a network file for samples of some data. path: for messages, which name the
// file, the line and the node. Throws what parse_graph() throws.
Graph parse_network_file(std::string_view text, const std::string& path, const NetworkInput& data);

// Returns the first difference between the nodes of two networks, such as "node 4 is {"op":"relu",
// ...}, found {"op":"add", ...}"; "" if there is none. What a run's flags give is not compared: the
// normalisation of the input and the smoothing of labels.
std::string first_difference(Graph expected, Graph found);

// Returns the hash of a network's text as 16 hexadecimal digits.
std::string network_hash(std::string_view text);

}  // namespace syncopate
