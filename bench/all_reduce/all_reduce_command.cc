// syncopate-bench all-reduce: microseconds of one all-reduce between processes of this machine,
// ours beside MPI and Gloo, which take turns.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/all_reduce/all_reduce.h"
#include "bench/harness/commands.h"

namespace syncopate::bench {
namespace {

constexpr int kMost = 1'000'000;  // of anything one can ask for
constexpr int kMostRanks = 64;

}  // namespace

Command declare_all_reduce(CLI::App& app, const Environment& /*environment*/) {
  const auto options = std::make_shared<AllReduceOptions>();
  app.add_option("--ranks", options->ranks, "processes of each side")
      ->check(CLI::Range(2, kMostRanks))
      ->capture_default_str();
  app.add_option("--sizes", options->sizes, "of the f32 tensor, in bytes, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--transport", options->transports, "of ours: shm, tcp or both")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--peers", options->peers,
                 "mpi, mpi-jemalloc, gloo-reno, gloo (the system's congestion control) or none "
                 "(those that are built)")
      ->delimiter(',');
  app.add_flag("--mpi-jemalloc", options->mpi_jemalloc, "also MPI with jemalloc preloaded");
  app.add_option("--rounds", options->rounds, "turns of each side")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--json", options->json_file, "write the results, round by round, to this file");
  app.add_flag("--quick", options->quick, "2 short rounds: does it run, not how fast");
  return [options] { run_all_reduce(*options); };
}

Command declare_all_reduce_rank(CLI::App& app, const Environment& /*environment*/) {
  const auto options = std::make_shared<AllReduceRankOptions>();
  app.add_option("--rank", options->rank)->check(CLI::Range(0, kMostRanks));
  app.add_option("--ranks", options->ranks)->check(CLI::Range(1, kMostRanks));
  app.add_option("--transport", options->transport)->check(CLI::IsMember({"shm", "tcp"}));
  app.add_option("--largest-bytes", options->largest_bytes)->check(CLI::PositiveNumber);
  return [options] { run_all_reduce_rank(*options); };
}

}  // namespace syncopate::bench
