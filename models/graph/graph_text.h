// A network as text: JSON with one node per operation. A checkpoint contains this text on one line,
// so that its network can be built again without the flags of the run. A network file is the form
// of the text that users write: it may leave the shape of the input and the number of classes to
// the data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/graph/graph.h"
#include "models/graph/network_input.h"

namespace syncopate {

// Returns {"name": ..., "nodes": [{"op": "conv2d", "name": "conv1", "inputs": [0], ...}, ...]} on
// one line. The text determines the whole graph, because shapes and parameters follow from the
// nodes.
std::string to_text(const Graph& graph);

// Whether a network file contains the shape of its input. With kFixed, data of another shape are
// refused; with kOfData, the data determine the shape.
enum class InputShape : std::uint8_t { kOfData, kFixed };

// Returns the text of a network file for the graph, with one line per node. A node that reads only
// the node before it has no "inputs". The layer that outputs the classes has "features": "classes".
std::string to_network_file(const Graph& graph, InputShape input_shape = InputShape::kOfData);

// Builds the graph from a text of to_text(). Throws UsageError, naming the node, for text in
// another form, an unknown operation or a size out of range. Throws ShapeError as GraphBuilder
// does.
Graph parse_graph(std::string_view text);

// Builds the graph of a network file for samples with the properties `data`. path: the name of the
// file in messages, which also name the line and the node. Throws what parse_graph() throws.
Graph parse_network_file(std::string_view text, const std::string& path, const NetworkInput& data);

// Returns the first difference between the nodes of two networks, such as "node 4 is {"op":"relu",
// ...}, found {"op":"add", ...}"; "" if there is none. The normalisation of the input and label
// smoothing are not compared, because flags of the run set them.
std::string first_difference(Graph expected, Graph found);

// Returns the hash of a network's text as 16 hexadecimal digits.
std::string network_hash(std::string_view text);

}  // namespace syncopate
