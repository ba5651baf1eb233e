// syncopate-bench scaling prints the samples per second of one replica with all threads and of
// several replicas that share the threads, and the cost of the sums between replicas. With --grid,
// it measures every combination of threads and replicas.
#include <algorithm>
#include <memory>
#include <thread>

#include "bench/harness/commands.h"
#include "bench/harness/report.h"
#include "bench/scaling/scaling.h"

namespace syncopate::bench {
namespace {

constexpr double kMost = 1'000'000;

}  // namespace

Command declare_scaling(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<ScalingOptions>();
  options->threads_total = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  flags.add("--model", &options->models, "networks", {.value = "NAME,...", .separator = ','});
  flags.add("--replicas", &options->replicas, "numbers of replicas, the first one the base",
            {.least = 1, .most = kMost, .separator = ','});
  flags.add("--strategy", &options->strategies,
            "strategies of several replicas, in one process or in one process each",
            {.choices = {"mirrored", "multi-worker-mirrored"}, .separator = ','});
  flags.add("--threads-total", &options->threads_total,
            "compute threads, divided among the replicas", {.least = 1, .most = kMost});
  flags.add("--batch-size-per-replica", &options->batch_size_per_replica,
            "samples per replica and step",
            {.default_text = "each network's usual one", .least = 1, .most = kMost});
  flags.add("--batch-size", &options->batch_size,
            "samples per step of all replicas, in place of --batch-size-per-replica",
            {.default_text = "the sum over the replicas",
             .least = 1,
             .most = kMost,
             .excludes = {"--batch-size-per-replica"}});
  flags.add("--peer-ddp", &options->peer_ddp,
            "PyTorch's DDP in the same rounds: a Python interpreter, or a command with its "
            "arguments",
            {.value = "COMMAND", .default_text = "none"});
  flags.add("--rounds", &options->rounds, "turns of each side", {.least = 1, .most = kMost});
  flags.add("--steps-per-round", &options->steps_per_round, "steps of a turn",
            {.default_text = "about a second of work", .least = 1, .most = kMost});
  flags.add("--json", &options->json_file, "file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick, "3 short rounds, to see that the benchmark runs");
  const auto words = std::make_shared<std::vector<std::string>>();
  flags.add("--grid", words.get(),
            "all combinations of threads=N,... per replica and replicas=N,..., each relative to "
            "the smallest; they may use more threads than there are CPUs",
            {.value = "threads=N,... replicas=N,...",
             .excludes = {"--replicas", "--threads-total", "--peer-ddp"},
             .several_words = true});
  flags.add("--report", &options->report, "folder for a page with the table and plots of --grid",
            {.value = "DIR", .default_text = "none", .needs = "--grid"});
  return [options, words] {
    if (!words->empty()) options->grid = parse_scaling_grid(*words);
    options->command = command_line();
    run_scaling(*options);
  };
}

Command declare_scaling_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<ScalingRankOptions>();
  flags.add("--rank", &options->rank, "", {.least = 0, .most = kMost});
  flags.add("--ranks", &options->ranks, "", {.least = 1, .most = kMost});
  flags.add("--model", &options->model, "");
  flags.add("--batch-size", &options->batch_size, "", {.least = 1, .most = kMost});
  flags.add("--lanes", &options->lanes, "", {.least = 1, .most = kMost});
  return [options] { run_scaling_rank(*options); };
}

}  // namespace syncopate::bench
