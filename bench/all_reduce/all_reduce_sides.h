// Lists the sides of `syncopate-bench all-reduce`, each with a name and a command line.
#pragma once

#include <string>
#include <vector>

#include "bench/all_reduce/all_reduce.h"
#include "bench/harness/contest.h"

namespace syncopate::bench {

struct AllReduceSides {
  std::vector<ContestSide> sides;   // This program's all-reduce comes first.
  std::vector<std::string> absent;  // One line per peer that is not built and was not requested.
};

// Finds what is measured: this program's all-reduce, once per transport, and other libraries.
// `largest_bytes` is the largest of all sizes. Throws UsageError for an unknown transport or
// library, and for a requested library that is missing.
AllReduceSides find_all_reduce_sides(const AllReduceOptions& options, std::int64_t largest_bytes);

}  // namespace syncopate::bench
