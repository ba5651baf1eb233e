// Counts the least work of a training step. The arithmetic speed and memory bandwidth of a device
// give a lower bound of the step's time from these numbers.
#pragma once

#include <cstdint>

#include "models/graph/graph.h"

namespace syncopate::bench {

struct StepWork {
  double flops = 0.0;  // Multiplications and additions.
  double bytes = 0.0;  // Transferred to and from the device's memory.
};

// Counts forward, backward and update for `batch_size` samples. Activations, their gradients and
// weights have `element_bytes` per element; master values and one slot are f32. Batch norm, ReLU
// and the sum of a residual join are one forward pass, which reads its input twice, and one
// backward pass. A convolution reads its maps once per pass. The count assumes that no data stays
// in a cache between operations.
StepWork count_work(const Graph& graph, std::int64_t batch_size, std::int64_t element_bytes);

}  // namespace syncopate::bench
