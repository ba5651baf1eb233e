// Small graphs that between them hold every operation, every pattern a backend may fuse, and the
// sizes that kernels get wrong: odd maps, channels that fill no vector, values with two readers.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

struct SmallNetwork {
  std::string name;  // letters and digits only: it becomes part of a test's name
  Graph graph;
};

std::vector<SmallNetwork> small_networks();
// The left branch's batch norm computes the sum as well, so it runs after the right branch, whose
// parameters stand behind its own.
Graph crossed_branches_network();
// Every operation at once, with residual joins.
Graph everything_network();

inline std::ostream& operator<<(std::ostream& out, const SmallNetwork& network) {
  return out << network.name;
}

}  // namespace syncopate
