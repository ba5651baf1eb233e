// Measures training steps on this machine: of one device, for the times of a cluster in plan and
// compare, and of two replicas, for the error that plan prints beside its prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/harness/measure.h"
#include "models/graph/graph.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct Calibration {
  double step_seconds = 0.0;  // median of input, forward, backward and update on one thread
  double lowest_seconds = 0.0;
  double highest_seconds = 0.0;
  int steps = 0;  // number of timed steps
  std::string device;
};

// Times steps of --strategy one-device after a warm-up: `steps` or more, for `seconds` or longer.
// Throws UsageError if the data has fewer samples than a batch, DivergenceError.
Calibration calibrate_step(const Graph& graph, const Dataset& train, std::int64_t batch_size,
                           int steps, double seconds = 0.0);

// Trains --strategy mirrored with two replicas of one thread each in this process, without delays
// and links, for about two seconds. Returns the samples per second of kCheckRounds, in each round
// of a step with the median time. Empty if the data has fewer samples than two batches.
inline constexpr int kCheckedWorkers = 2;
inline constexpr int kCheckRounds = 5;
std::optional<Spread> measure_two_replicas(const Graph& graph, const Dataset& train,
                                           std::int64_t batch_size);

}  // namespace syncopate::bench
