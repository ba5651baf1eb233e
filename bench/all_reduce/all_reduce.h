// Runs `syncopate-bench all-reduce`, which compares our ring with MPI. Every side is a
// group of processes on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::bench {

struct AllReduceOptions {
  int ranks = 2;
  std::vector<std::string> sizes = {"4K", "64K", "1M", "4M", "16M", "64M"};
  std::vector<std::string> transports = {"shm", "tcp"};  // The transports of our side.
  std::vector<std::string> peers;  // Other libraries to measure; empty: MPI if it is built.
  bool mpi_jemalloc = false;       // Adds MPI with jemalloc preloaded.
  int rounds = 7;
  double seconds_per_turn = 0.25;
  std::string json_file;
  bool quick = false;
};

// Measures each size in turn and prints one table per size. Throws UsageError for an unknown name
// or size and for a library that is not built, PeerError for a group of ranks that fails.
void run_all_reduce(AllReduceOptions options);

// Parses a size in bytes; K, M and G are powers of 1024, so "64K" is 65536. Throws UsageError
// unless the size is a positive multiple of 4, the size of an f32.
std::int64_t parse_size_bytes(std::string_view text);

// Returns the bytes that cross each rank's link per byte of the tensor in an optimal all-reduce.
// The algorithm bandwidth is size / time; multiplied by this factor it is the bus bandwidth, which
// the hardware carried. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, AllReduce.
double bus_factor(int ranks) noexcept;

}  // namespace syncopate::bench
