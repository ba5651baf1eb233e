// How the replicas of a synchronous job are joined: a collective on the host, and on GPUs, where it
// can be, what sums gradients there. Then only step reports and rare things (first values,
// checkpoints, statistics) travel by the host.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/device_collective.h"
#include "strategies/strategy.h"

namespace syncopate {

struct JoinedReplicas {
  std::vector<std::unique_ptr<Collective>> collectives;  // one per local replica
  // As many, or none: gradients are summed on the host, or there is one replica.
  std::vector<std::unique_ptr<DeviceCollective>> on_device;
  // Values, gradients and slots stay on the device.
  bool updates_on_device = false;
};

// Where gradients are summed.
enum class SumPlace {
  kNowhere,  // one replica
  kHost,
  kOneGpu,  // all replicas are threads of one process, on one GPU
  kNccl,    // each has a GPU of its own
};
struct SumChoice {
  SumPlace place = SumPlace::kHost;
  std::string why_host;  // where it was chosen for want of a better one
};

// Where a replica computes.
struct ReplicaPlace {
  int task = 0;
  std::string machine;
  std::string gpu;  // unique in its machine; "": the CPU
};

// replicas: all of the job, by rank. Throws UsageError: NCCL was asked for and cannot be.
SumChoice choose_sums(std::string_view collective, std::span<const ReplicaPlace> replicas);

// For mirrored and multi-worker-mirrored; every task calls. Throws as make_collectives() and
// choose_sums(), and DeviceError.
JoinedReplicas join_replicas(const StrategyOptions& options, const Graph& graph);

}  // namespace syncopate
