// Runs `syncopate-bench all-reduce`, which compares this program's ring all-reduce with MPI. Every
// side is a group of processes on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::bench {

struct AllReduceOptions {
  int ranks = 2;
  std::vector<std::string> sizes = {"4K", "64K", "1M", "4M", "16M", "64M"};
  std::vector<std::string> transports = {"shm", "tcp"};  // transports of this program's ring
  std::vector<std::string> peers;  // other libraries to measure; empty: MPI, if built
  bool mpi_jemalloc = false;       // also measures MPI with jemalloc preloaded
  int rounds = 7;
  double seconds_per_turn = 0.25;
  std::string json_file;
  bool quick = false;
};

// Measures each size in turn and prints one table per size. Throws UsageError for a wrong size or a
// library that is not built. Throws PeerError if a side fails.
void run_all_reduce(AllReduceOptions options);

// Parses a size in bytes, with K, M and G for powers of 1024: "64K" is 65536. Throws UsageError
// unless the size is a positive multiple of 4, which is the size of an f32.
std::int64_t parse_size_bytes(std::string_view text);

// Returns the number of bytes that cross each rank's link in an optimal all-reduce, per byte of the
// tensor. The algorithm bandwidth, size / time, multiplied by this factor is the bus bandwidth,
// which can be compared with the bandwidth of the hardware. Source: NVIDIA nccl-tests,
// doc/PERFORMANCE.md, AllReduce.
double bus_factor(int ranks) noexcept;

}  // namespace syncopate::bench
