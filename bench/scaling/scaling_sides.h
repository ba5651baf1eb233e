// Makes the sides of `syncopate-bench scaling`, which are ways to spend an equal number of threads
// on one network.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/scaling/scaling.h"
#include "bench/scaling/scaling_grid.h"
#include "bench/step/workload.h"

namespace syncopate::bench {

// Holds the times of one turn.
struct ScalingTurn {
  // Times of one step.
  double step_seconds = 0.0;           // Median.
  double exposed_seconds = 0.0;        // Mean time that replicas waited for sums.
  double communication_seconds = 0.0;  // Mean time in which a sum was in progress.
  // Times of the whole turn, which measure_scaling() measures.
  double wall_seconds = 0.0;
  double cpu_seconds = 0.0;  // The sum over all processes of the side.
};

// One way to train. One thread only.
class ScalingSide {
 public:
  virtual ~ScalingSide() = default;
  virtual ScalingTurn run(int steps) = 0;  // Throws PeerError, DivergenceError.
  virtual std::vector<pid_t> pids() const = 0;
  virtual std::string description() const = 0;
};

struct ScalingEntry {
  std::string name;  // Is a name such as "mirrored".
  bool ours = true;
  int replicas = 1;
  int lanes = 1;
  std::int64_t batch_size = 0;  // The number of samples of all replicas.
  std::unique_ptr<ScalingSide> side;
};

// Makes one entry per combination, in order. Throws UsageError, PeerError.
std::vector<ScalingEntry> make_grid_entries(const ScalingOptions& options, const Workload& workload,
                                            const std::vector<ScalingCombination>& combinations);

// Makes the entries of a run without a grid; the peer comes last. Throws UsageError, PeerError.
std::vector<ScalingEntry> make_scaling_entries(const ScalingOptions& options,
                                               const Workload& workload);

}  // namespace syncopate::bench
