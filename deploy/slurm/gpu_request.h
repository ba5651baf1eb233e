// What a job asks of its nodes: how many GPUs the options of sbatch request, how many tasks use
// them, and which share of a node's CPUs belongs to a task on a GPU. Called by the command line of
// `syncopate sbatch`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "deploy/slurm/job_script.h"

namespace syncopate {

// The GPUs that options of sbatch request; 0 where none does.
struct GpuRequest {
  int per_node = 0;  // --gres, --gpus-per-node
  int per_task = 0;  // --gpus-per-task
  int in_job = 0;    // --gpus
  std::string type;  // such as "a100"; empty: any

  bool is_empty() const noexcept { return per_node + per_task + in_job == 0; }
  // Returns the GPUs of each node in a job of this many nodes and tasks per node.
  int of_node(int nodes, int tasks_per_node) const noexcept;
};

// Reads the GPUs out of options.resources and options.other_options. "gpu:a100:4",
// "scratch:10,gpu:2" and "a100:4" request that many, "gpu" one.
GpuRequest requested_gpus(const SbatchOptions& options);

// Returns the CPUs of a node for each of its GPUs, as `scontrol show nodes --oneliner` describes
// the nodes: the least of the nodes that have GPUs of this type and as many as requested.
// partitions: the job's, as sbatch takes them, such as "gpu,long"; empty: any. Nothing if no node
// fits.
std::optional<int> cpus_per_gpu(std::string_view nodes, std::string_view partitions,
                                std::string_view type, int least_gpus);

}  // namespace syncopate
