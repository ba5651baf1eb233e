// Measures training steps on this machine. `plan` and `compare` derive the step times of a cluster
// from the step of one device. `plan` compares its prediction with the steps of two replicas.
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

// Times at least `steps` steps of --strategy one-device, for at least `seconds`, after a warm-up.
// Throws UsageError if the data has fewer samples than a batch. Throws DivergenceError.
Calibration calibrate_step(const Graph& graph, const Dataset& train, std::int64_t batch_size,
                           int steps, double seconds = 0.0);

// The number of replicas that measure_two_replicas() trains, and the number of its rounds.
inline constexpr int kCheckedWorkers = 2;
inline constexpr int kCheckRounds = 5;
// Trains --strategy mirrored for about two seconds, with kCheckedWorkers replicas of one thread
// each in this process, without delays and links. Returns the spread of the samples per second over
// kCheckRounds rounds, each computed from the median step time of the round. Returns nullopt if the
// data has fewer samples than two batches.
std::optional<Spread> measure_two_replicas(const Graph& graph, const Dataset& train,
                                           std::int64_t batch_size);

}  // namespace syncopate::bench
