// Computes the number of GPUs that the options of sbatch request, and the number of CPUs per GPU on
// the nodes that fit the request. Called by the command line of `syncopate sbatch`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "deploy/slurm/job_script.h"

namespace syncopate {

// The numbers of GPUs that the options of sbatch request. The number of an option that is not given
// is 0.
struct GpuRequest {
  int per_node = 0;  // --gres, --gpus-per-node
  int per_task = 0;  // --gpus-per-task
  int in_job = 0;    // --gpus
  std::string type;  // the type, such as "a100"; empty: any type

  bool is_empty() const noexcept { return per_node + per_task + in_job == 0; }
  // Returns the number of GPUs that the options request on each node, in a job of `nodes` nodes
  // with `tasks_per_node` tasks per node.
  int of_node(int nodes, int tasks_per_node) const noexcept;
};

// Reads the requested GPUs from options.resources and options.other_options. "gpu:a100:4" and
// "a100:4" request 4 GPUs, "scratch:10,gpu:2" requests 2, and "gpu" requests 1.
GpuRequest requested_gpus(const SbatchOptions& options);

// Returns the smallest ratio of CPUs to GPUs of all nodes that fit the request; nullopt if no node
// fits. A node fits if it has at least `least_gpus` GPUs of the type `type`. nodes: the output of
// `scontrol show nodes --oneliner`. partitions: the partitions of the job in the form of sbatch,
// such as "gpu,long"; empty: any partition.
std::optional<int> cpus_per_gpu(std::string_view nodes, std::string_view partitions,
                                std::string_view type, int least_gpus);

}  // namespace syncopate
