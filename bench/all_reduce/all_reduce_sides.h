// Who takes part in `syncopate-bench all-reduce`: a name and a command line each.
#pragma once

#include <string>
#include <vector>

#include "bench/all_reduce/all_reduce.h"

namespace syncopate::bench {

struct AllReduceSide {
  std::string name;  // "ours, shm", "mpi-jemalloc"
  bool ours = false;
  bool tcp = false;  // carries its data over TCP, else through memory
  std::vector<std::string> command;
};

struct AllReduceSides {
  std::vector<AllReduceSide> sides;  // ours first
  std::vector<std::string> absent;   // a line for each peer that nobody asked for and is not built
};

// `largest_bytes`: of all sizes. Throws UsageError for an unknown transport or peer and for one
// that was asked for and is not there.
AllReduceSides find_all_reduce_sides(const AllReduceOptions& options, std::int64_t largest_bytes);

}  // namespace syncopate::bench
