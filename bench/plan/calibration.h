// What `plan` measures on this machine: a training step, a server's update, and two replicas that
// train together, beside which its prediction is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/harness/measure.h"
#include "models/graph/graph.h"
#include "ps/shard/placement.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct Calibration {
  double step_seconds = 0.0;  // median of input, forward, backward and update on one thread
  double lowest_seconds = 0.0;
  double highest_seconds = 0.0;
  int steps = 0;  // number of timed steps
  std::string device;
};

// Times `steps` steps of --strategy one-device after a warm-up. Throws UsageError if the data has
// fewer samples than a batch, DivergenceError.
Calibration calibrate_step(const Graph& graph, const Dataset& train, std::int64_t batch_size,
                           int steps);

// How fast one thread applies gradients to the shard of a server, without sockets: ps::Shard takes
// a push of a whole gradient, updates the values with SGD and copies them for the answer.
struct ServerCalibration {
  std::int64_t bytes = 0;       // of a gradient for this server, the one with the most values
  double update_seconds = 0.0;  // median
  int pushes = 0;               // number of timed pushes
  double bytes_per_second() const noexcept {
    return update_seconds > 0.0 ? static_cast<double>(bytes) / update_seconds : 0.0;
  }
};
ServerCalibration calibrate_server(const Graph& graph, const ps::Placement& placement, int servers);

// Trains --strategy mirrored with two replicas of one thread each in this process, without delays
// and links, for about two seconds. Returns the samples per second of kCheckRounds, in each round
// of a step with the median time. Empty if the data has fewer samples than two batches.
inline constexpr int kCheckedWorkers = 2;
inline constexpr int kCheckRounds = 5;
std::optional<Spread> measure_two_replicas(const Graph& graph, const Dataset& train,
                                           std::int64_t batch_size);

}  // namespace syncopate::bench
