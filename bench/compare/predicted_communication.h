// Predicts the communication time of a step from the link, for comparison with the measured time.
#pragma once

#include <optional>

#include "bench/compare/variant.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Returns the seconds per step of one worker, by the formulas of virtual/network.h: for a
// synchronous variant all workers send at once, otherwise one worker has the servers to itself.
// Empty without link emulation, with compressed gradients, whose size depends on the data, and for
// flags that train refuses.
std::optional<double> predict_communication(const RunSpec& run, const DataSplits& data);

}  // namespace syncopate::bench
