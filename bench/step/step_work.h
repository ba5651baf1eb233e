// Counts the least work of a training step, and compares the speed of a GPU during a measured step
// with the highest speed that the GPU reaches.
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
  double bytes = 0.0;  // transferred to and from the device's memory
};

// Counts forward, backward and update for `batch_size` samples. Activations, their gradients and
// weights have `element_bytes` per element; master values and one slot are f32. Batch norm, ReLU
// and the sum of a residual join are one forward pass, which reads its input twice, and one
// backward pass. A convolution reads its maps once per pass. The count assumes that no data stays
// in a cache between operations.
StepWork count_work(const Graph& graph, std::int64_t batch_size, std::int64_t element_bytes);

// The measurements of one step on a GPU.
struct DeviceFigures {
  DeviceCeilings ceilings;    // highest speeds, measured just before the step
  StepWork work;              // least work of one step
  std::vector<double> busy;   // utilisation per turn from the driver; empty if not reported
  double memory_bytes = 0.0;  // peak memory use of all processes on the device
};

// Return the figures as text for people, such as "72.1 TFLOP/s, 9.1% of the 790 of a large product;
// ...", and as JSON for programs.
std::string describe(const DeviceFigures& figures, double step_seconds);
nlohmann::json figures_json(const DeviceFigures& figures, double step_seconds);

}  // namespace syncopate::bench
