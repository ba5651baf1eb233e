// Measures the update of a server on this machine. `plan` computes the time of servers from this
// measurement.
#pragma once

#include <cstdint>

#include "models/graph/graph.h"
#include "ps/shard/placement.h"

namespace syncopate::bench {

// The speed at which one thread applies gradients to the shard of a server, without sockets.
// ps::Shard takes a push of a whole gradient, updates the values with SGD and copies the values for
// the answer.
struct ServerCalibration {
  std::int64_t bytes = 0;       // bytes of a gradient for the server with the most values
  double update_seconds = 0.0;  // median time of an update
  int pushes = 0;               // number of timed pushes
  double bytes_per_second() const noexcept {
    return update_seconds > 0.0 ? static_cast<double>(bytes) / update_seconds : 0.0;
  }
};
ServerCalibration calibrate_server(const Graph& graph, const ps::Placement& placement, int servers);

}  // namespace syncopate::bench
