// What a step of this network costs here, and how many bytes its values are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct Calibration {
  double step_seconds = 0.0;  // median: input, forward, backward and update, on one thread
  double lowest_seconds = 0.0;
  double highest_seconds = 0.0;
  int steps = 0;  // timed
  std::string device;
};

// Trains `steps` of one-device in this process, after a few that are not counted. Throws UsageError
// for a batch larger than the data; DivergenceError when the loss is not a number.
Calibration calibrate(const Graph& graph, const Dataset& train, std::int64_t batch_size, int steps);

}  // namespace syncopate::bench
