// Runs `syncopate-bench scaling`. Compares one replica with many lanes to several replicas with
// fewer lanes and the same total number of threads. With a grid, compares every combination of
// threads and replicas with the smallest combination.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/scaling/scaling_grid.h"
#include "bench/step/workload_data.h"

namespace syncopate::bench {

struct ScalingOptions {
  std::vector<std::string> models = {"mnist-cnn", "resnet20"};
  std::vector<int> replicas = {1, 2};
  // The strategies for several replicas: mirrored (all replicas in this process) or
  // multi-worker-mirrored (one process per replica).
  std::vector<std::string> strategies = {kMirrored};
  int threads_total = 2;
  std::int64_t batch_size_per_replica = 0;  // 0: the workload's own batch size
  std::int64_t batch_size = 0;              // if not 0, the batch size of all replicas together
  int steps_per_round = 0;                  // 0: a round takes about one second
  int rounds = 7;
  // The peer, PyTorch's DDP: a Python interpreter that runs bench/peers/torch_ddp.py, or a command.
  // If empty, there is no peer.
  std::string peer_ddp;
  std::string json_file;
  bool quick = false;
  WorkloadData data;  // the samples; random samples without --data
  // The grid of combinations. If set, it replaces `replicas`, `threads_total` and `peer_ddp`.
  std::optional<ScalingGrid> grid;
  // The folder for the page scaling.html of a grid; if empty, no page is written.
  std::filesystem::path report;
  std::string command;  // the command line that the report shows
};

// Returns the workloads of all models. Throws UsageError, and what open_dataset() throws.
std::vector<Workload> workloads_of(const ScalingOptions& options);

// Measures each model in turn and prints one table per model. Throws UsageError, PeerError,
// DivergenceError.
void run_scaling(ScalingOptions options);

// Measures every combination of threads and replicas in a grid. Called by run_scaling(). Throws
// what run_scaling() throws, and FileError.
void run_scaling_grid(const ScalingOptions& options);

// Returns threads_total / replicas, the threads of each replica. Throws UsageError if the division
// has a remainder.
int lanes_per_replica(int threads_total, int replicas);

// Returns the batch size of each replica. usual: the batch size of the workload, used if the
// options set none. Throws UsageError if `replicas` do not divide --batch-size.
std::int64_t batch_per_replica(const ScalingOptions& options, std::int64_t usual, int replicas);

}  // namespace syncopate::bench
