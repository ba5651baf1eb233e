// Lists the sides of `syncopate-bench all-reduce`, each with a name and a command line.
#pragma once

#include <string>
#include <vector>

#include "bench/all_reduce/all_reduce.h"
#include "bench/harness/contest.h"

namespace syncopate::bench {

struct AllReduceSides {
  std::vector<ContestSide> sides;   // Our sides come first.
  std::vector<std::string> absent;  // One line per peer that is not built and was not requested.
};

// Finds our sides and the peers. `largest_bytes` is the largest of all sizes. Throws UsageError for
// an unknown transport or peer, and for a requested peer that is missing.
AllReduceSides find_all_reduce_sides(const AllReduceOptions& options, std::int64_t largest_bytes);

}  // namespace syncopate::bench
