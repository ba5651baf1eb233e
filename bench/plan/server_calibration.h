// Measures a server's update on this machine. Plan computes from it how long servers take.
#pragma once

#include <cstdint>

#include "models/graph/graph.h"
#include "ps/shard/placement.h"

namespace syncopate::bench {

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

}  // namespace syncopate::bench
