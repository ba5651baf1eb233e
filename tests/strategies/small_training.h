// Provides a network of a few hundred parameters, a batch for it, and copies of snapshots, for the
// tests of strategies.
#pragma once

#include <cstdint>

#include "models/graph/graph.h"
#include "strategies/strategy.h"

namespace syncopate::test {

inline constexpr std::int64_t kBatch = 4;

// Returns a network with convolution, optional batch norm, ReLU and a dense layer for samples [4,
// 4, 2].
Graph small_network(bool has_batch_norm = true);

// Returns kBatch samples of the classes 0 to 3. Their elements rise from `first` in steps of 1/16,
// and start again at -1 after 1.
Batch small_batch(float first = -1.0F, std::int64_t loss_divisor = kBatch);

// Returns a copy of a live snapshot, in memory of its own.
Snapshot copy_of(const Snapshot& live);

// Returns whether values, running statistics, slots and slot names of two snapshots are equal bit
// for bit.
bool same_blocks(const Snapshot& a, const Snapshot& b);

}  // namespace syncopate::test
