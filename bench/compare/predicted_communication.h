// What a step's communication should take on the links that were asked for: to be held against what
// was measured.
#pragma once

#include <optional>

#include "bench/compare/variant.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Seconds of one worker's step, by the formulas of virtual/network.h: where workers keep step, of
// all that send at once; else of a worker that has the servers to itself. Nothing without links,
// with compressed gradients, whose size is not known beforehand, and for flags that train refuses.
std::optional<double> predict_communication(const RunSpec& run, const DataSplits& data);

}  // namespace syncopate::bench
