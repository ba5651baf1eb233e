// syncopate-bench scaling: samples per second of one replica with all threads, beside several
// replicas that share them, and what the sums between replicas cost; with --grid, every combination
// of threads and replicas.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <thread>

#include "bench/harness/commands.h"
#include "bench/harness/report.h"
#include "bench/scaling/scaling.h"

namespace syncopate::bench {
namespace {

constexpr int kMost = 1'000'000;  // of anything one can ask for

}  // namespace

Command declare_scaling(CLI::App& app, const Environment& /*environment*/) {
  const auto options = std::make_shared<ScalingOptions>();
  options->threads_total = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  app.add_option("--model", options->models, "networks, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  auto* replicas = app.add_option("--replicas", options->replicas,
                                  "numbers of replicas to compare; first the base")
                       ->delimiter(',')
                       ->check(CLI::Range(1, kMost))
                       ->capture_default_str();
  app.add_option("--strategy", options->strategies,
                 "of several replicas: mirrored (in one process), multi-worker-mirrored (a process "
                 "each) or both")
      ->delimiter(',')
      ->capture_default_str();
  auto* threads_total =
      app.add_option("--threads-total", options->threads_total, "dealt out to the replicas")
          ->check(CLI::Range(1, kMost))
          ->capture_default_str();
  auto* per_replica = app.add_option("--batch-size-per-replica", options->batch_size_per_replica,
                                     "(each network's usual one)")
                          ->check(CLI::Range(1, kMost));
  app.add_option("--batch-size", options->batch_size, "of all replicas together, instead")
      ->check(CLI::Range(1, kMost))
      ->excludes(per_replica);
  auto* peer_ddp = app.add_option("--peer-ddp", options->peer_ddp,
                                  "PyTorch's DDP in the same rounds: an interpreter, or a whole "
                                  "command, words split at blanks");
  app.add_option("--rounds", options->rounds, "turns of each side")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--steps-per-round", options->steps_per_round, "(about a second of work)")
      ->check(CLI::Range(1, kMost));
  app.add_option("--json", options->json_file, "write the results, round by round, to this file");
  app.add_flag("--quick", options->quick, "3 short rounds: does it run, not how fast");
  const auto words = std::make_shared<std::vector<std::string>>();
  auto* grid = app.add_option("--grid", *words,
                              "instead: every combination of threads=N,... of each replica and "
                              "replicas=N,..., over the smallest; also more threads than CPUs")
                   ->excludes(replicas)
                   ->excludes(threads_total)
                   ->excludes(peer_ddp);
  app.add_option("--report", options->report, "of a grid: a folder for a page with table and plots")
      ->needs(grid);
  return [options, words] {
    if (!words->empty()) options->grid = parse_scaling_grid(*words);
    options->command = command_line();
    run_scaling(*options);
  };
}

Command declare_scaling_rank(CLI::App& app, const Environment& /*environment*/) {
  const auto options = std::make_shared<ScalingRankOptions>();
  app.add_option("--rank", options->rank)->check(CLI::Range(0, kMost));
  app.add_option("--ranks", options->ranks)->check(CLI::Range(1, kMost));
  app.add_option("--model", options->model);
  app.add_option("--batch-size", options->batch_size)->check(CLI::Range(1, kMost));
  app.add_option("--lanes", options->lanes)->check(CLI::Range(1, kMost));
  return [options] { run_scaling_rank(*options); };
}

}  // namespace syncopate::bench
