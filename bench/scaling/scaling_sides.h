// Makes the sides of `syncopate-bench scaling` and measures them in turns. Each side trains the
// same network, with its own number of threads and replicas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/harness/rounds.h"
#include "bench/scaling/scaling.h"
#include "bench/scaling/scaling_grid.h"
#include "bench/step/workload.h"

namespace syncopate::bench {

// The times of one turn of a side.
struct ScalingTurn {
  // Times of one training step in the turn.
  std::vector<double> steps{};         // seconds of each; empty for a turn of other processes
  double step_seconds = 0.0;           // median of the turn's steps
  double exposed_seconds = 0.0;        // mean time that replicas waited for sums
  double communication_seconds = 0.0;  // mean time with a sum in progress
  // Times of the whole turn, which measure_scaling() measures.
  double wall_seconds = 0.0;
  double cpu_seconds = 0.0;  // of all processes of the side together
};

// Trains some steps and returns the times of one step, and the seconds of all.
ScalingTurn train_turn(WorkloadTraining& training, int steps);

// Returns the hidden command that starts one of `ranks` processes of multi-worker-mirrored, without
// the name of the program.
std::vector<std::string> scaling_rank_words(const Workload& workload, const WorkloadData& data,
                                            int ranks, int lanes);

// Trains a network with one number of threads and replicas, for one row of the results. One thread
// only.
class ScalingSide {
 public:
  virtual ~ScalingSide() = default;
  virtual ScalingTurn run(int steps) = 0;  // throws PeerError, DivergenceError
  virtual std::vector<pid_t> pids() const = 0;
  virtual std::string description() const = 0;
};

// A side together with the properties that identify its row in the results.
struct ScalingEntry {
  std::string name;  // name of the side, such as mirrored
  bool ours = true;
  int replicas = 1;
  int lanes = 1;
  std::int64_t batch_size = 0;  // number of samples of all replicas
  std::unique_ptr<ScalingSide> side;
};

// Makes the sides of a run with a grid: for each combination of threads and replicas, in order, an
// entry with the side that trains the network with this combination. Throws UsageError. Throws
// PeerError if the processes of a side end early or do not become ready in time.
std::vector<ScalingEntry> make_grid_entries(const ScalingOptions& options, const Workload& workload,
                                            const std::vector<ScalingCombination>& combinations);

// Makes the sides of a run without a grid, each in an entry. The peer, PyTorch, comes last. Throws
// UsageError. Throws PeerError if the processes of a side end early or do not become ready in time.
std::vector<ScalingEntry> make_scaling_entries(const ScalingOptions& options,
                                               const Workload& workload);

// The measurements of all sides. `rounds` has the samples per second of each side in each round;
// `turns` has the other numbers.
struct ScalingResult {
  Workload workload;
  std::vector<ScalingEntry> entries;
  std::vector<std::vector<ScalingTurn>> turns;  // indexed as [entry][round]
  Rounds rounds;
};

// Measures the sides in `entries` in turns, round by round. Throws PeerError, DivergenceError,
// FileError.
ScalingResult measure_scaling(const ScalingOptions& options, const Workload& workload,
                              std::vector<ScalingEntry> entries);

// Returns median and range of one number of ScalingTurn for the side of result.entries[entry], over
// the rounds that quiet_rounds() (bench/harness/measure.h) selects.
Spread spread_of_turns(const ScalingResult& result, std::size_t entry, double ScalingTurn::*number);

}  // namespace syncopate::bench
