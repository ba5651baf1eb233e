// Measures the time of a training step on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct Calibration {
  double step_seconds = 0.0;  // Median of input, forward, backward and update on one thread.
  double lowest_seconds = 0.0;
  double highest_seconds = 0.0;
  int steps = 0;  // The number of timed steps.
  std::string device;
};

// Trains `steps` steps of one-device in this process, after a few uncounted steps. Throws
// UsageError for a batch larger than the data, DivergenceError when the loss is not a number.
Calibration calibrate(const Graph& graph, const Dataset& train, std::int64_t batch_size, int steps);

}  // namespace syncopate::bench
