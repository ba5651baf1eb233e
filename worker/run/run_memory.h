// A lower bound of the memory that a run takes, computed before any memory is allocated. By this
// bound `train` refuses a network that cannot fit into the memory. Without this check the kernel
// would end the process without a message, after minutes of paging.
#pragma once

#include <cstdint>
#include <string>

#include "models/graph/graph.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Lower bounds of the bytes that the replicas of this process take on the CPU.
struct RunMemory {
  // Parameters and optimizer state; counted once if replicas may share them. No optimizer state
  // with servers.
  std::int64_t values = 0;
  std::int64_t gradients = 0;  // gradients of one replica, summed over its lanes
  std::int64_t slots = 0;
  std::int64_t activations = 0;  // activations of one replica that backward reads
  std::int64_t outer = 0;        // outer values and outer momentum of one replica
  // Optimizer state of all workers, which the chief collects to write a checkpoint, if every worker
  // has its own.
  std::int64_t collected = 0;
  int replicas = 1;
  std::int64_t all() const noexcept {
    return values + slots + collected + replicas * (gradients + activations + outer);
  }
};

// Returns the memory that this process takes at least. options: must have the number of lanes
// (compute threads) and the batch size per replica that the run uses.
RunMemory least_memory(const TrainOptions& options, const Graph& graph);

// The memory of this host, in bytes, that limits a run.
struct HostMemory {
  std::int64_t available = 0;  // memory that this process can get now
  // The memory of the host or the cgroup, which all tasks of this host share; 0: unknown. Memory in
  // use is not subtracted, because tasks of this run may be using it.
  std::int64_t total = 0;
  // Number of tasks of this run on this host, which have the same network and options.
  int tasks = 1;
};

// Returns the reason why the run does not fit into `memory`, with the bytes of each part and
// advice; "" if the run may fit. Parameter servers on the host are not counted.
std::string memory_refusal(const TrainOptions& options, const Graph& graph,
                           const HostMemory& memory);

// Throws UsageError with the text of memory_refusal() if the run does not fit into the memory that
// the machine, the cgroups and the limit on address space leave to this process. Does not check a
// run on GPUs.
void require_memory(const TrainOptions& options, const Graph& graph, const Membership* membership);

}  // namespace syncopate
