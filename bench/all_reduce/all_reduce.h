// What `syncopate-bench all-reduce` does, apart from its flags (all_reduce_command.cc): our ring
// beside MPI and Gloo, every side a group of processes on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::bench {

struct AllReduceOptions {
  int ranks = 2;
  std::vector<std::string> sizes = {"4K", "64K", "1M", "4M", "16M", "64M"};
  std::vector<std::string> transports = {"shm", "tcp"};  // of ours
  std::vector<std::string> peers;                        // empty: all that are built
  bool mpi_jemalloc = false;                             // also MPI with jemalloc preloaded
  int rounds = 7;
  double seconds_per_turn = 0.25;
  std::string json_file;
  bool quick = false;
};

// Measures each size in turn and prints a table for each.
// Throws UsageError for a name or size it does not know and a peer that is not built, PeerError for
// a side that fails.
void run_all_reduce(AllReduceOptions options);

// One process of our own side: rank 0 is started by run_all_reduce and starts the others.
struct AllReduceRankOptions {
  int rank = 0;
  int ranks = 2;
  std::string transport = "shm";
  std::int64_t largest_bytes = std::int64_t{64} << 20;
};
// Throws PeerError.
void run_all_reduce_rank(const AllReduceRankOptions& options);

// "64K": 65536; K, M and G are powers of 1024. Throws UsageError unless it is a number of whole
// f32, one at least.
std::int64_t parse_size_bytes(std::string_view text);

// Bytes that cross each rank's link, per byte of the tensor, in the best all-reduce of `ranks`:
// turns size / time (algorithm bandwidth) into what the hardware carried (bus bandwidth).
// Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, AllReduce.
double bus_factor(int ranks) noexcept;

}  // namespace syncopate::bench
