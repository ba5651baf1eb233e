// Joins the replicas of a synchronous job by a collective on the host and, if possible, by a device
// collective that sums gradients on the GPUs. With a device collective, the host's collective
// carries only step reports and rare data (initial values, checkpoints, statistics).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/device_collective.h"
#include "strategies/strategy.h"

namespace syncopate {

struct JoinedReplicas {
  std::vector<std::unique_ptr<Collective>> collectives;  // one per replica of this task
  // One device collective per local replica. Empty if the host sums gradients, or if the job has
  // only one replica.
  std::vector<std::unique_ptr<DeviceCollective>> on_device;
  // True if values, gradients and slots stay on the device during training.
  bool updates_on_device = false;
  // One backend per local replica. If empty, the options choose the backends.
  std::vector<std::unique_ptr<Backend>> backends{};
  // Memory for the gradients of the only local replica, [arena total] f32. If absent, a replica's
  // gradients are in the block of the replica's collective, behind the step trailer
  // (step_trailer.h).
  std::optional<Tensor> gradients{};
};

// The place where the gradients of all replicas are summed.
enum class SumPlace {
  kNowhere,  // there is one replica
  kHost,
  kOneGpu,  // all replicas are threads of one process and share one GPU
  kNccl,    // each replica has its own GPU, and NCCL sums
};
struct SumChoice {
  SumPlace place = SumPlace::kHost;
  std::string why_host;  // why the host sums, if the GPUs were expected to sum and cannot
};

// The place of a replica: its task, its machine and its device.
struct ReplicaPlace {
  int task = 0;
  std::string machine;
  std::string gpu;  // names the GPU within its machine; "" for a replica on the CPU
};

// Chooses where gradients are summed. `collective` is the value of --collective, `replicas` are all
// replicas of the job, by rank. Throws UsageError if --collective nccl is impossible.
SumChoice choose_sums(std::string_view collective, std::span<const ReplicaPlace> replicas);

// Joins the replicas of mirrored and multi-worker-mirrored. Every task must call it. Throws
// DeviceError, and the errors of make_collectives() and choose_sums().
JoinedReplicas join_replicas(const StrategyOptions& options, const Graph& graph);

}  // namespace syncopate
