// A network of a few hundred parameters, a batch for it, and copies of snapshots, for the tests of
// strategies.
#pragma once

#include <cstdint>

#include "models/graph/graph.h"
#include "strategies/strategy.h"

namespace syncopate::test {

inline constexpr std::int64_t kBatch = 4;

// Convolution, batch norm if asked for, ReLU and a dense layer on samples [4, 4, 2].
Graph small_network(bool has_batch_norm = true);

// kBatch samples of the classes 0 to 3. Their elements rise from `first` in steps of 1/16, and
// start again at -1 after 1.
Batch small_batch(float first = -1.0F, std::int64_t loss_divisor = kBatch);

// A copy in memory of its own.
Snapshot copy_of(const Snapshot& live);

// Whether values, running statistics and slots are equal bit for bit, and slot names are equal.
bool same_blocks(const Snapshot& a, const Snapshot& b);

}  // namespace syncopate::test
