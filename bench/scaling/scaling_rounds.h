// The measurement of `syncopate-bench scaling`, with a grid and without: entries take turns.
#pragma once

#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/rounds.h"
#include "bench/scaling/scaling_sides.h"

namespace syncopate::bench {

// Samples per second per round are in `rounds`; the turns' other numbers beside them.
struct ScalingResult {
  Workload workload;
  std::vector<ScalingEntry> entries;
  std::vector<std::vector<ScalingTurn>> turns;  // [entry][round]
  Rounds rounds;
};

// Throws PeerError, DivergenceError, FileError.
ScalingResult measure_scaling(const ScalingOptions& options, const Workload& workload,
                              std::vector<ScalingEntry> entries);

// One of a turn's numbers, over the rounds that count.
Spread spread_of_turns(const ScalingResult& result, std::size_t entry, double ScalingTurn::*number);

}  // namespace syncopate::bench
