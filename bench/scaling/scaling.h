// Runs `syncopate-bench scaling`, which compares one replica with many lanes to several replicas
// with fewer lanes and an equal total of threads. With a grid, it compares every combination of
// threads and replicas with the smallest one.
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
  // The strategies of entries with several replicas: mirrored (all replicas in this process) or
  // multi-worker-mirrored (one process per replica).
  std::vector<std::string> strategies = {kMirrored};
  int threads_total = 2;
  std::int64_t batch_size_per_replica = 0;  // 0: the workload's own batch size
  std::int64_t batch_size = 0;              // if not 0, the batch size of all replicas together
  int steps_per_round = 0;                  // 0: a round takes about one second
  int rounds = 7;
  // The peer is PyTorch's DDP: an interpreter for bench/peers/torch_ddp.py, or a command. If empty,
  // there is no peer.
  std::string peer_ddp;
  std::string json_file;
  bool quick = false;
  WorkloadData data;  // the samples; random ones if no --data was given
  // The grid of combinations. If set, it replaces `replicas`, `threads_total` and `peer_ddp`.
  std::optional<ScalingGrid> grid;
  // The folder for a grid's scaling.html; if empty, no page is written.
  std::filesystem::path report;
  std::string command;  // the command line that the report shows
};

// Returns the workloads of all models. Throws UsageError, and what open_dataset() throws.
std::vector<Workload> workloads_of(const ScalingOptions& options);

// Measures each model in turn and prints one table per model. Throws UsageError, PeerError,
// DivergenceError.
void run_scaling(ScalingOptions options);

// Measures every combination of a grid of threads and replicas. Called by run_scaling(). Throws
// what run_scaling() throws, and FileError.
void run_scaling_grid(const ScalingOptions& options);

// Returns the threads of each replica. Throws UsageError unless they divide evenly.
int lanes_per_replica(int threads_total, int replicas);

// Returns the samples per replica; `usual` is the workload's number. Throws UsageError when
// --batch-size does not divide evenly.
std::int64_t batch_per_replica(const ScalingOptions& options, std::int64_t usual, int replicas);

}  // namespace syncopate::bench
