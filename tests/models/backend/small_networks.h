// Returns small graphs that together contain every operation, every pattern that a backend may
// fuse, and sizes that are error-prone in kernels: odd maps, channels that do not fill a vector,
// values with two readers.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

struct SmallNetwork {
  std::string name;  // letters and digits only, because it is part of a test name
  Graph graph;
};

// Adds nodes behind a value, and returns the last one.
using NetworkBody = std::function<NodeId(GraphBuilder&, NodeId)>;

std::vector<SmallNetwork> small_networks();
// Appends a network with u8 samples [H, W, C] that classifies the map of `body`.
void append_map(std::vector<SmallNetwork>& all, std::string name, const Shape& shape,
                const NetworkBody& body);
// Returns a convolution with a ReLU.
NetworkBody conv_relu(int channels, Conv2dOp operation);
// Appends the networks of convolutions, of all strides, paddings, groups and pools behind them,
// which are among small_networks().
void append_convolutions(std::vector<SmallNetwork>& all);
// Appends the networks whose targets are numbers, which are among small_networks().
void append_losses_of_numbers(std::vector<SmallNetwork>& all);
// Appends the networks of operations that enlarge, reshape or multiply maps, which are among
// small_networks().
void append_axis_networks(std::vector<SmallNetwork>& all);
// Returns a network with two branches. The batch norm of the left branch also computes the sum of
// the branches, so it runs after the right branch although its parameters come first in the arena.
Graph crossed_branches_network();
// Returns a residual network that contains every operation.
Graph everything_network();

inline std::ostream& operator<<(std::ostream& out, const SmallNetwork& network) {
  return out << network.name;
}

}  // namespace syncopate
