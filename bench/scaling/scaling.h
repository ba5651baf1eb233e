// What `syncopate-bench scaling` does, apart from its flags (scaling_command.cc): the same threads
// as one replica with many lanes and as several replicas with fewer; or, with a grid, every
// combination of threads and replicas against the smallest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/scaling/scaling_grid.h"

namespace syncopate::bench {

struct ScalingOptions {
  std::vector<std::string> models = {"mnist-cnn", "resnet20"};
  std::vector<int> replicas = {1, 2};
  // Of the entries with several replicas: mirrored (in this process), multi-worker-mirrored (a
  // process each).
  std::vector<std::string> strategies = {"mirrored"};
  int threads_total = 2;
  std::int64_t batch_size_per_replica = 0;  // 0: the workload's own
  std::int64_t batch_size = 0;              // not 0: of all replicas together, instead
  int steps_per_round = 0;                  // 0: about a second
  int rounds = 7;
  // PyTorch's DDP: an interpreter for bench/peers/torch_ddp.py, or a command. Empty: none.
  std::string peer_ddp;
  std::string json_file;
  bool quick = false;
  // Instead of `replicas`, `threads_total` and `peer_ddp`.
  std::optional<ScalingGrid> grid;
  std::filesystem::path report;  // of a grid: a folder for scaling.html. Empty: none.
  std::string command;           // as the report repeats it
};

// Measures each model in turn and prints a table for each.
// Throws UsageError, PeerError, DivergenceError.
void run_scaling(ScalingOptions options);

// What run_scaling does where there is a grid (scaling_grid_run.cc). Throws FileError, too.
void run_scaling_grid(const ScalingOptions& options);

// One process of a multi-worker side: rank 0 is started by run_scaling and starts the others.
struct ScalingRankOptions {
  int rank = 0;
  int ranks = 2;
  std::string model = "mnist-cnn";
  std::int64_t batch_size = 0;  // of this replica
  int lanes = 1;
};
// Throws UsageError, PeerError, DivergenceError.
void run_scaling_rank(const ScalingRankOptions& options);

// The threads of each replica. Throws UsageError unless they can be dealt out evenly.
int lanes_per_replica(int threads_total, int replicas);

// The samples of each replica. Throws UsageError when --batch-size cannot be dealt out evenly.
std::int64_t batch_per_replica(const ScalingOptions& options, std::int64_t usual, int replicas);

}  // namespace syncopate::bench
