// Counts the smallest amount of work of a training step, and compares the speed of a GPU in a
// measured step with the highest speed of this GPU.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/backend/cuda_module.h"
#include "models/graph/graph.h"

namespace syncopate::bench {

struct StepWork {
  double flops = 0.0;  // number of multiplications and additions
  double bytes = 0.0;  // bytes read from and written to the device's memory
};

// Counts the work of forward pass, backward pass and update for `batch_size` samples. Activations,
// their gradients and weights have `element_bytes` per element; master values and one slot are f32.
// Batch norm with the following ReLU and addition of a residual connection counts as one operation;
// the forward pass of this operation reads its input twice. A convolution reads its maps once per
// pass. The count assumes that no data stays in a cache between operations.
StepWork count_work(const Graph& graph, std::int64_t batch_size, std::int64_t element_bytes);

// The measurements of one step on a GPU.
struct DeviceFigures {
  DeviceCeilings ceilings;    // highest speeds, measured before the step
  StepWork work;              // smallest amount of work of one step
  std::vector<double> busy;   // utilisation in each turn; empty if the driver does not report it
  double memory_bytes = 0.0;  // peak use by all processes on the device
};

// Return the figures as text for people and as JSON for programs. The text is such as "72.1
// TFLOP/s, 9.1% of the 790 of a large product; ...".
std::string describe(const DeviceFigures& figures, double step_seconds);
nlohmann::json figures_json(const DeviceFigures& figures, double step_seconds);

}  // namespace syncopate::bench
