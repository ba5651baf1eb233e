// A network as text: JSON with a node per operation. Checkpoints keep it, so that their network can
// be built again without the flags of the run.
#pragma once

#include <string>
#include <string_view>

#include "models/graph/graph.h"

namespace syncopate {

// Returns {"name": ..., "nodes": [{"op": "conv2d", "name": "conv1", "inputs": [0], ...}, ...]} on
// one line. The text holds all that the graph holds; shapes and parameters follow from the nodes.
std::string to_text(const Graph& graph);

// Builds the graph of a text. Throws UsageError naming the node for text in another form, unknown
// operations and sizes out of range; ShapeError as GraphBuilder does.
Graph parse_graph(std::string_view text);

// Returns the hash of a network's text as 16 hexadecimal digits.
std::string network_hash(std::string_view text);

}  // namespace syncopate
