// What a training step does at least, by counting: what a device's arithmetic and memory allow
// follows from it, whatever computes.
#pragma once

#include <cstdint>

#include "models/graph/graph.h"

namespace syncopate::bench {

struct StepWork {
  double flops = 0.0;  // multiplications and additions
  double bytes = 0.0;  // to and from the device's memory
};

// Forward, backward and update of `batch_size` samples; activations, their gradients and weights of
// so many bytes an element, master values and one slot in f32. Batch norm, ReLU and the sum of a
// residual join are one pass forward, which reads its input twice, and one backward; a convolution
// reads its maps once a pass; nothing stays in a cache from one operation to the next.
StepWork count_work(const Graph& graph, std::int64_t batch_size, std::int64_t element_bytes);

}  // namespace syncopate::bench
