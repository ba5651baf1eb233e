// Who takes part in `syncopate-bench scaling`: ways to spend the same threads on the same network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/scaling/scaling.h"
#include "bench/scaling/scaling_grid.h"
#include "bench/step/workload.h"

namespace syncopate::bench {

// One turn.
struct ScalingTurn {
  // Of a step.
  double step_seconds = 0.0;           // median
  double exposed_seconds = 0.0;        // mean: replicas stood waiting for sums
  double communication_seconds = 0.0;  // mean: sums were under way
  // Of the whole turn; measure_scaling() takes them.
  double wall_seconds = 0.0;
  double cpu_seconds = 0.0;  // of all processes of the side
};

// One thread only.
class ScalingSide {
 public:
  virtual ~ScalingSide() = default;
  virtual ScalingTurn run(int steps) = 0;  // throws PeerError, DivergenceError
  virtual std::vector<pid_t> pids() const = 0;
  virtual std::string description() const = 0;
};

struct ScalingEntry {
  std::string name;  // "mirrored"
  bool ours = true;
  int replicas = 1;
  int lanes = 1;
  std::int64_t batch_size = 0;  // of all replicas
  std::unique_ptr<ScalingSide> side;
};

// The combinations of a grid, in order. Throws UsageError, PeerError.
std::vector<ScalingEntry> make_grid_entries(const ScalingOptions& options, const Workload& workload,
                                            const std::vector<ScalingCombination>& combinations);

// The peer last. Throws UsageError, PeerError.
std::vector<ScalingEntry> make_scaling_entries(const ScalingOptions& options,
                                               const Workload& workload);

}  // namespace syncopate::bench
