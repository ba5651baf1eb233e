// Evaluates a graph in double precision, node by node: one forward pass, the loss and one backward
// pass. Tests compare backends and fused groups with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/backend/model.h"
#include "models/graph/graph.h"
#include "tests/reference/operations.h"

namespace syncopate::reference {

struct Samples {
  Values x;                          // [N, H, W, C]; u8 pixels have values 0 to 255
  std::vector<std::int32_t> labels;  // [N], or [N, H, W] for label maps; empty for numbers
  Values numbers;                    // [N, K], or empty
  std::int64_t targets_per_sample = 1;
  std::vector<std::uint64_t> keys;  // [N], or empty without dropout

  std::int64_t size() const {
    return static_cast<std::int64_t>(labels.size() + numbers.size()) / targets_per_sample;
  }
};

// Variables holds parameters and state in the order of Graph::parameters and Graph::state, in
// memory order.
struct Variables {
  std::vector<Values> parameters;
  std::vector<Values> state;
};

struct Result {
  Values logits;                  // [N, classes], [N, H, W, classes] or [N, K]
  double loss = 0.0;              // the sum of the sample losses / loss_divisor
  double metric = 0.0;            // the sum of the samples' main metric
  std::vector<Values> gradients;  // one per parameter; empty in Mode::kEvaluate
  std::vector<Values> state;      // after the step; unchanged in Mode::kEvaluate and for no samples
};

// A Rounding changes the output of node `node`, as a device does that stores it with fewer bits.
// For conv2d and dense it is called twice: before the bias is added and for the output.
using Rounding = std::function<void(int node, Values& values)>;

// Evaluates the graph on samples. Without samples, gradients are zero and the state does not
// change.
Result run(const Graph& graph, const Variables& variables, const Samples& samples,
           double loss_divisor, Mode mode, const Rounding& rounding = {});

}  // namespace syncopate::reference
