// Parses the words of `syncopate-bench scaling --grid` and lists the combinations they stand for.
#pragma once

#include <string>
#include <vector>

#include "strategies/strategy_row.h"

namespace syncopate::bench {

struct ScalingGrid {
  std::vector<int> threads = {1};   // threads per replica, ascending
  std::vector<int> replicas = {1};  // numbers of replicas, ascending
};

// Parses --grid words such as "threads=1,2" and "replicas=1,2,4" in any order. A missing word
// stands for 1. Throws UsageError.
ScalingGrid parse_scaling_grid(const std::vector<std::string>& words);

// Throws UsageError unless the grid's strategy is mirrored or multi-worker-mirrored, which can have
// several replicas.
void require_scaling_strategy(const std::string& strategy);

struct ScalingCombination {
  std::string strategy;  // name of the strategy; kOneDevice with one replica
  int replicas = 1;
  int threads = 1;  // number of threads per replica
};

// Returns all combinations. The first has the fewest replicas and threads and is the base of all
// comparisons; the others are ordered by strategy. One replica is equal under every strategy, so it
// appears once for each number of threads. Throws UsageError for an unknown or repeated strategy.
std::vector<ScalingCombination> combinations_of(const ScalingGrid& grid,
                                                const std::vector<std::string>& strategies);

}  // namespace syncopate::bench
