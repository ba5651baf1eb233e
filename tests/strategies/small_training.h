// What tests of strategies train: a network of a few hundred parameters, and copies of what came of
// it.
#pragma once

#include <cstdint>

#include "models/graph/graph.h"
#include "strategies/strategy.h"

namespace syncopate::test {

inline constexpr std::int64_t kBatch = 4;

// Convolution, ReLU and a dense layer on [4, 4, 2]; with batch norm between the first two, or not.
Graph small_network(bool has_batch_norm = true);

// kBatch samples of values that begin at `first`, from -1 to 1, of the classes 0 to 3.
Batch small_batch(float first = -1.0F, std::int64_t loss_divisor = kBatch);

// Live memory written out.
Snapshot copy_of(const Snapshot& live);

// Values, running statistics, and slots with their names, bit for bit.
bool same_blocks(const Snapshot& a, const Snapshot& b);

}  // namespace syncopate::test
