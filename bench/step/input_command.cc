// syncopate-bench input prints how many samples per second the input pipeline alone delivers, and
// the ratio of this rate to the rate at which a network consumes samples. The two take turns.
#include <memory>
#include <thread>

#include "bench/harness/commands.h"
#include "bench/step/input.h"
#include "deploy/cli/command_line.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {
namespace {

constexpr double kMost = 1'000'000;

}  // namespace

Command declare_input(FlagSet& flags, const Environment& environment) {
  const auto options = std::make_shared<InputBenchOptions>();
  options->lanes = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options->cache_dir = default_cache_dir(environment);
  std::string known;
  for (const DatasetRow& row : datasets()) {
    known += (known.empty() ? "" : " | ") + std::string(row.pattern);
  }
  flags.add("--data", &options->data, "data set: " + known, {.value = "NAME"});
  flags.add("--batch-size", &options->input.batch_size, "samples per batch",
            {.least = 1, .most = kMost});
  flags.add("--input-threads", &options->input.threads, "threads that read and augment samples",
            {.least = 1, .most = kMost});
  flags.add("--prefetch", &options->input.prefetch, "batches that are prepared ahead",
            {.least = 1, .most = kMost});
  flags.add("--augment", &options->augment, "augmentation", {.choices = {"none", "crop-flip"}});
  flags.add("--model", &options->model, "network that consumes samples of its usual size",
            {.value = "NAME"});
  flags.add("--threads", &options->lanes, "compute threads of the network",
            {.least = 1, .most = kMost});
  flags.add("--rounds", &options->rounds, "turns of each side", {.least = 1, .most = kMost});
  flags.add("--cache-dir", &options->cache_dir, "folder of rendered samples", {.value = "DIR"});
  flags.add("--json", &options->json_file, "file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick, "3 short rounds, to see that the benchmark runs");
  return [options] { run_input(*options); };
}

}  // namespace syncopate::bench
