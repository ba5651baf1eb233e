// Lists the sides of `syncopate-bench all-reduce`, each with a name and a command line.
#pragma once

#include <string>
#include <vector>

#include "bench/all_reduce/all_reduce.h"
#include "bench/harness/contest.h"
#include "models/base/flag_rules.h"

namespace syncopate::bench {

struct AllReduceSides {
  std::vector<ContestSide> sides;   // the all-reduce of this program comes first
  std::vector<std::string> absent;  // one line per peer that is not built and was not requested
};

// Finds the sides to measure: this program's all-reduce, once per transport, and other libraries.
// largest_bytes: the largest size to measure. Throws UsageError for a requested library that is
// missing.
AllReduceSides find_all_reduce_sides(const AllReduceOptions& options, std::int64_t largest_bytes);

// Returns the names of AllReduceOptions::peers.
Names all_reduce_peers();

}  // namespace syncopate::bench
