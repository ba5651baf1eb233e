// A cluster as a comparison describes it: how long steps take, which workers are slow, paused,
// killed or late, and what the links are like. `compare` has one for all of its variants;
// --clusters names several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/fault_injection.h"

namespace syncopate::bench {

struct Cluster {
  std::string name{};  // of --clusters, such as "slow-link"; "" for the command line's
  FaultInjection faults{};
  std::vector<std::string> flags{};  // the faults as flags of compare, each with its value
};

// The flags of compare that describe a cluster, as text.
struct ClusterFlags {
  std::string service_time;
  std::vector<std::string> slow;
  std::vector<std::string> pauses;
  std::vector<std::string> kills;
  std::vector<std::string> joins;
  std::string link_delay;
  std::string link_rate;
};

// Adds what the flags say to the cluster. A service time takes the place of an earlier one. Throws
// UsageError for a wrong value.
void add_flags(Cluster& cluster, const ClusterFlags& flags);

// Returns the value of --slow that --slow-worker 4x stands for: the last of the workers. Throws
// UsageError for another form of factor.
std::string slow_worker(const std::string& factor, int workers);

// Returns the clusters that the words of --clusters stand for: equal, jitter, slow-worker,
// slow-link, or a name of one's own with flags in braces, such as 'mine{slow-worker=4x}'. A named
// cluster is a ratio: its step times are multiples of step_milliseconds. Throws UsageError.
std::vector<Cluster> parse_clusters(const std::vector<std::string>& words, int workers,
                                    double step_milliseconds);

// Returns the help of --clusters: the named clusters.
std::string describe_clusters();

}  // namespace syncopate::bench
