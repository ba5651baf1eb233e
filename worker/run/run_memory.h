// The memory that a run takes at least, before it is taken: `train` refuses a network that cannot
// fit. Otherwise the kernel would end the process without a message, after minutes of paging.
#pragma once

#include <cstdint>
#include <string>

#include "models/graph/graph.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Bytes that the replicas of this process take on the CPU, each a lower bound.
struct RunMemory {
  std::int64_t values = 0;       // counted once: replicas may share them
  std::int64_t gradients = 0;    // of each replica; each lane has its own
  std::int64_t slots = 0;        // optimizer state, counted once; 0 with servers
  std::int64_t activations = 0;  // of each replica: what the gradients of weights are computed from
  int replicas = 1;
  std::int64_t all() const noexcept {
    return values + slots + replicas * (gradients + activations);
  }
};

// options: with the lanes and the batch size per replica that the run uses.
RunMemory least_memory(const TrainOptions& options, const Graph& graph);

// The memory, in bytes, that a run may take.
struct HostMemory {
  std::int64_t available = 0;  // to this process now
  // The memory of the host or the cgroup, which all tasks of this host share; 0: unknown. Memory
  // that they have taken so far is not subtracted: it may be this run's.
  std::int64_t total = 0;
  int tasks = 1;  // of this run on this host, each with the same network and options
};

// Returns why the run does not fit into `memory`, with the sum by part and what to try; "" if it
// may fit. Parameter servers on the host are not counted.
std::string memory_refusal(const TrainOptions& options, const Graph& graph,
                           const HostMemory& memory);

// Throws UsageError with the text of memory_refusal() for the memory that this process can get:
// of the machine, of its cgroups and of its limit on address space. Replicas on GPUs pass.
void require_memory(const TrainOptions& options, const Graph& graph, const Membership* membership);

}  // namespace syncopate
