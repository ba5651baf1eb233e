// Parses the flags of `syncopate train` about the strategy: its devices, the other tasks and the
// consistency of shared variables. Resolves the cluster from the flags and the environment.
#pragma once

#include <optional>
#include <string>

#include "deploy/cli/device_flags.h"
#include "deploy/cli/fault_flags.h"
#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "worker/run/train_options.h"

namespace syncopate {

struct StrategyFlags {
  ClusterFlags cluster;
  DeviceFlags devices;
  FaultFlags faults;
  std::int64_t bucket_mib = 8;
  std::optional<double> rendezvous_timeout;  // in seconds
  std::optional<double> peer_timeout;        // in seconds
};

// Adds --rank, --world-size, --servers, --rendezvous, --nonce and --role. resolve_cluster() decides
// what they mean together. --local-rank is accepted and ignored.
void add_cluster_flags(FlagSet& flags, ClusterFlags& cluster);

// Adds the flags of the group "Strategy and devices".
void add_strategy_flags(FlagSet& flags, StrategyFlags& words, TrainOptions& options);
// Adds the flags of the group "Cluster" to train.
void add_job_flags(FlagSet& flags, StrategyFlags& words);

// Fills the strategy options that one flag alone determines. Throws UsageError for a wrong value.
void take_strategy_flags(const FlagSet& flags, const StrategyFlags& words, TrainOptions& options);
// Fills options.cluster and what depends on it: timeouts and faults. Called after
// take_strategy_flags(). Throws UsageError for flags that contradict each other or the environment.
void check_cluster(const FlagSet& flags, const StrategyFlags& words, const Environment& environment,
                   TrainOptions& options);

struct ConsistencyFlags {
  std::string compress = "none";
  std::string partition;  // how variables are divided; "" splits large variables only
};

void add_consistency_flags(FlagSet& flags, ConsistencyFlags& consistency, TrainOptions& options);

// Fills the options that each flag alone determines. Throws UsageError for a wrong value.
void take_consistency_flags(const ConsistencyFlags& consistency, TrainOptions& options);
// Fills options.strategy.consistency. Called after take_consistency_flags(), when the cluster is
// known. Throws UsageError for flags that contradict each other.
void check_consistency(const FlagSet& flags, TrainOptions& options);

}  // namespace syncopate
