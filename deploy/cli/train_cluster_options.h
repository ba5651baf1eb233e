// The flags of `syncopate train` that say who takes part and how they agree, and the cluster that
// flags and environment resolve to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/cli/link_options.h"
#include "deploy/cli/options.h"

namespace CLI {
class App;
}

namespace syncopate {

struct TrainClusterFlags {
  ClusterFlags cluster;
  double rendezvous_timeout = 0.0;  // seconds
  double peer_timeout = 0.0;        // seconds
  bool share_devices = false;
  std::string transport = "auto";
  std::string batch_norm = "local";
  std::string learning_rate_scale = "none";
  std::string service_time;  // "": none
  std::vector<std::string> slow;
  std::vector<std::string> pauses;
  LinkFlags link;
};

void add_train_cluster_flags(CLI::App& app, TrainClusterFlags& flags, TrainOptions& options);

// Fills what follows from each flag alone. Throws UsageError.
void take_cluster_values(const CLI::App& app, const TrainClusterFlags& flags,
                         TrainOptions& options);

// Fills what depends on the cluster: options.cluster, timeouts, compute delays. Called after
// take_cluster_values().
// Throws UsageError.
void check_cluster(const CLI::App& app, const TrainClusterFlags& flags,
                   const Environment& environment, TrainOptions& options);

}  // namespace syncopate
