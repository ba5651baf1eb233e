// What the strategies with a consistency of their own must be told beside StrategyOptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ps/shard/consistency.h"
#include "ps/shard/gradient_codec.h"
#include "ps/shard/placement.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// What is to be trained: the coordinator hands it out, so it must know.
struct JobPlan {
  std::string network;  // for messages
  std::int64_t dataset_size = 0;
  std::int64_t batch_size = 0;  // of a step: of all workers together where they keep step
  std::int64_t total_epochs = 0;
  std::optional<std::int64_t> total_steps;  // decides instead of total_epochs
  std::int64_t eval_every_epochs = 0;
  std::int64_t eval_every_steps = 0;
  std::int64_t checkpoint_every_steps = 0;
  bool writes_checkpoints = false;
};

struct ParameterServerOptions {
  ps::CompressionOptions compression;
  ps::PartitionRule partition;
  ClusterSpec cluster;
  std::vector<Agreement> agreements;
  JobPlan plan;
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);
  bool insists_on_peer_timeout = false;  // somebody chose it, and servers must have the same
  // How long a server may be gone, because somebody starts it again.
  std::chrono::milliseconds server_patience = std::chrono::seconds(5);
  std::function<bool()> asked_to_stop;  // whether this task is; any thread
};

// All workers' gradients of the same values make one update, and nobody is left out.
constexpr bool keeps_step(const ps::ConsistencyOptions& consistency) noexcept {
  return consistency.consistency == ps::Consistency::kSync && consistency.backup_workers == 0;
}

}  // namespace syncopate
