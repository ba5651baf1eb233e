// Parses the words of `syncopate-bench scaling --grid` and lists the combinations of the grid.
#pragma once

#include <string>
#include <vector>

#include "strategies/strategy_row.h"

namespace syncopate::bench {

struct ScalingGrid {
  std::vector<int> threads = {1};   // threads per replica, ascending
  std::vector<int> replicas = {1};  // numbers of replicas, ascending
};

// Parses words of --grid such as "threads=1,2" and "replicas=1,2,4", in any order. Without a word
// for threads or replicas, their number is 1. Throws UsageError.
ScalingGrid parse_scaling_grid(const std::vector<std::string>& words);

// Throws UsageError unless `strategy` is mirrored or multi-worker-mirrored, the strategies with
// several replicas that a grid can have.
void require_scaling_strategy(const std::string& strategy);

struct ScalingCombination {
  std::string strategy;  // name of the strategy; kOneDevice with one replica
  int replicas = 1;
  int threads = 1;  // number of threads per replica
};

// Returns all combinations. The first combination has the fewest replicas and threads; all other
// combinations are compared with the first one, and are ordered by strategy. With one replica, all
// strategies are equal, so there is only one such combination for each number of threads. Throws
// UsageError for an unknown or repeated strategy.
std::vector<ScalingCombination> combinations_of(const ScalingGrid& grid,
                                                const std::vector<std::string>& strategies);

}  // namespace syncopate::bench
