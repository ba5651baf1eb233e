// The flags of `syncopate train` about the strategy, its devices and the other tasks, and the
// cluster that flags and environment resolve to.
#pragma once

#include <optional>
#include <string>

#include "deploy/cli/cluster_flags.h"
#include "deploy/cli/device_flags.h"
#include "deploy/cli/fault_flags.h"
#include "models/base/environment.h"

namespace syncopate {

struct StrategyFlags {
  ClusterFlags cluster;
  DeviceFlags devices;
  FaultFlags faults;
  std::int64_t bucket_mib = 8;
  std::optional<double> rendezvous_timeout;  // seconds
  std::optional<double> peer_timeout;        // seconds
};

// The group "Strategy and devices".
void add_strategy_flags(FlagSet& flags, StrategyFlags& words, TrainOptions& options);
// The group "Cluster".
void add_job_flags(FlagSet& flags, StrategyFlags& words);

// Fills what follows from each flag alone. Throws UsageError.
void take_strategy_flags(const FlagSet& flags, const StrategyFlags& words, TrainOptions& options);
// Called after take_strategy_flags(). Fills options.cluster and what depends on it: timeouts,
// faults. Throws UsageError for flags that contradict each other or the environment.
void check_cluster(const FlagSet& flags, const StrategyFlags& words, const Environment& environment,
                   TrainOptions& options);

}  // namespace syncopate
