// Runs a whole graph in double precision, node by node: one forward pass, the loss, one backward
// pass. Backends, fused groups and the golden numbers are held against it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/backend/model.h"
#include "models/graph/graph.h"
#include "tests/reference/operations.h"

namespace syncopate::reference {

struct Samples {
  Values x;                          // [N, H, W, C]; u8 pixels as 0 .. 255
  std::vector<std::int32_t> labels;  // [N]

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

// In the order of Graph::parameters and Graph::state, each as in memory.
struct Variables {
  std::vector<Values> parameters;
  std::vector<Values> state;
};

struct Result {
  Values logits;      // [N, classes]
  double loss = 0.0;  // sum / loss_divisor
  std::int64_t num_correct = 0;
  std::vector<Values> gradients;  // one per parameter; empty in Mode::kEvaluate
  std::vector<Values> state;      // after the step; unchanged in Mode::kEvaluate and for no samples
};

// Changes what node `node` passes on, as a device does that stores it in fewer bits; of a product
// (conv2d, dense) first what it is without its bias.
using Rounding = std::function<void(int node, Values& values)>;

Result run(const Graph& graph, const Variables& variables, const Samples& samples,
           double loss_divisor, Mode mode, const Rounding& rounding = {});

}  // namespace syncopate::reference
