// Implements the measurement of `syncopate-bench scaling`, with and without a grid. The entries
// take turns.
#pragma once

#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/rounds.h"
#include "bench/scaling/scaling_sides.h"

namespace syncopate::bench {

// The result of all turns. `rounds` has the samples per second of each round; `turns` has the other
// numbers of each turn.
struct ScalingResult {
  Workload workload;
  std::vector<ScalingEntry> entries;
  std::vector<std::vector<ScalingTurn>> turns;  // [entry][round]
  Rounds rounds;
};

// Measures all entries in turns. Throws PeerError, DivergenceError, FileError.
ScalingResult measure_scaling(const ScalingOptions& options, const Workload& workload,
                              std::vector<ScalingEntry> entries);

// Returns the spread of one number of the turns over the rounds that quiet_rounds selects.
Spread spread_of_turns(const ScalingResult& result, std::size_t entry, double ScalingTurn::*number);

}  // namespace syncopate::bench
