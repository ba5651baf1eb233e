// A cluster as a comparison describes it: the times of steps, the workers that are slow, paused,
// killed or join late, and the speed of the links. `compare` runs all variants on one cluster, or
// on each cluster of --clusters.
#pragma once

#include <string>
#include <vector>

#include "bench/harness/fault_injection.h"

namespace syncopate::bench {

struct Cluster {
  std::string name{};  // a name of --clusters, such as "slow-link"; "" without --clusters
  FaultInjection faults{};
  std::vector<std::string> flags{};  // `faults` as flags of compare, each with its value
};

// The values of the flags of compare that describe a cluster.
struct ClusterFlags {
  std::string service_time{};
  std::vector<std::string> slow{};
  std::vector<std::string> pauses{};
  std::vector<std::string> kills{};
  std::vector<std::string> joins{};
  std::string link_delay{};
  std::string link_rate{};
  std::string costs{};
};

// Adds the faults of these flags to the cluster. A service time replaces the service time that the
// cluster has. Throws UsageError for a wrong value.
void add_flags(Cluster& cluster, const ClusterFlags& flags);

// Returns whether a value of --costs has a compute time of a step.
bool has_step_cost(const std::string& costs);

// Converts a value of --slow-worker, such as "4x", to the value of --slow that makes the last
// worker slower by this factor. Throws UsageError for a factor in another form.
std::string slow_worker(const std::string& factor, int workers);

// Returns the clusters that the words of --clusters describe. A word is equal, jitter, slow-worker,
// slow-link, or another name with flags in braces, such as 'mine{slow-worker=4x}'. The step times
// of the four named clusters are multiples of step_milliseconds. Throws UsageError for a wrong
// word.
std::vector<Cluster> parse_clusters(const std::vector<std::string>& words, int workers,
                                    double step_milliseconds);

// Returns the part of --help that describes the named clusters.
std::string describe_clusters();

}  // namespace syncopate::bench
