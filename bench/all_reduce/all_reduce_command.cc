// syncopate-bench all-reduce prints the microseconds of one all-reduce between processes of this
// machine. Our ring takes turns with MPI and Gloo.
#include <memory>

#include "bench/all_reduce/all_reduce.h"
#include "bench/harness/commands.h"

namespace syncopate::bench {
namespace {

constexpr double kMost = 1'000'000;
constexpr double kMostRanks = 64;

}  // namespace

Command declare_all_reduce(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<AllReduceOptions>();
  flags.add("--ranks", &options->ranks, "processes of each side", {.least = 2, .most = kMostRanks});
  flags.add("--sizes", &options->sizes, "sizes of the f32 tensor in bytes, such as 64K or 1M",
            {.value = "SIZE,...", .separator = ','});
  flags.add("--transport", &options->transports, "transports of our side",
            {.choices = {"shm", "tcp"}, .separator = ','});
  flags.add("--peers", &options->peers,
            "other sides: mpi, mpi-jemalloc, gloo-reno, gloo (with the system's congestion "
            "control) or none",
            {.value = "NAME,...", .default_text = "all that are built", .separator = ','});
  flags.add("--mpi-jemalloc", &options->mpi_jemalloc, "additionally MPI with jemalloc preloaded");
  flags.add("--rounds", &options->rounds, "turns of each side", {.least = 1, .most = kMost});
  flags.add("--json", &options->json_file, "file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick, "2 short rounds, to see that the benchmark runs");
  return [options] { run_all_reduce(*options); };
}

Command declare_all_reduce_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<AllReduceRankOptions>();
  flags.add("--rank", &options->rank, "", {.least = 0, .most = kMostRanks});
  flags.add("--ranks", &options->ranks, "", {.least = 1, .most = kMostRanks});
  flags.add("--transport", &options->transport, "", {.choices = {"shm", "tcp"}});
  flags.add("--largest-bytes", &options->largest_bytes, "", {.least = 1});
  return [options] { run_all_reduce_rank(*options); };
}

}  // namespace syncopate::bench
