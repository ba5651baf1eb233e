// The grid of `syncopate-bench scaling --grid`: its words, and the combinations they stand for.
#pragma once

#include <string>
#include <vector>

namespace syncopate::bench {

inline constexpr const char* kMultiWorkerMirrored = "multi-worker-mirrored";

struct ScalingGrid {
  std::vector<int> threads = {1};   // of each replica, ascending
  std::vector<int> replicas = {1};  // ascending
};

// Of words such as "threads=1,2" and "replicas=1,2,4", in any order; what is left out is 1.
// Throws UsageError.
ScalingGrid parse_scaling_grid(const std::vector<std::string>& words);

// Throws UsageError unless several replicas can be had of it: mirrored, multi-worker-mirrored.
void require_scaling_strategy(const std::string& strategy);

struct ScalingCombination {
  std::string strategy;  // of one replica: one-device
  int replicas = 1;
  int threads = 1;  // of each replica
};

// The fewest of each first, which is the base of all; then strategy by strategy. One replica is the
// same under every strategy and comes once for each number of threads.
// Throws UsageError for a wrong strategy, or one that stands there twice.
std::vector<ScalingCombination> combinations_of(const ScalingGrid& grid,
                                                const std::vector<std::string>& strategies);

}  // namespace syncopate::bench
