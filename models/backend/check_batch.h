// Whether a batch is one of a network's.
#pragma once

#include <cstdint>

#include "models/backend/model.h"
#include "models/graph/graph.h"

namespace syncopate {

// Throws ShapeError: samples of another shape or type, more than `most`, a label that is no class,
// a loss divisor below 1. Batch and labels are on the host.
void check_batch(const Graph& graph, const Batch& batch, std::int64_t most);

}  // namespace syncopate
