// syncopate-bench input: how many samples per second the pipeline alone delivers, and how many
// times what a network eats; both measured in turns.
#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "bench/harness/commands.h"
#include "bench/step/input.h"
#include "deploy/cli/options.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {
namespace {

constexpr int kMost = 1'000'000;  // of anything one can ask for

}  // namespace

Command declare_input(CLI::App& app, const Environment& environment) {
  const auto options = std::make_shared<InputBenchOptions>();
  options->lanes = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options->cache_dir = default_cache_dir(environment);
  std::string known;
  for (const DatasetRow& row : datasets())
    known += (known.empty() ? "" : ", ") + std::string(row.pattern);
  app.add_option("--data", options->data, known)->capture_default_str();
  app.add_option("--batch-size", options->input.batch_size, "samples per batch")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--input-threads", options->input.threads, "that read and augment")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--prefetch", options->input.prefetch, "batches ready ahead")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--augment", options->augment)
      ->check(CLI::IsMember({"none", "crop-flip"}))
      ->capture_default_str();
  app.add_option("--model", options->model, "the network to feed, on samples of its usual size")
      ->capture_default_str();
  app.add_option("--threads", options->lanes, "its compute lanes")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--rounds", options->rounds)->check(CLI::Range(1, kMost))->capture_default_str();
  app.add_option("--cache-dir", options->cache_dir, "where rendered data sets are kept")
      ->capture_default_str();
  app.add_option("--json", options->json_file, "write the results, round by round, to this file");
  app.add_flag("--quick", options->quick, "3 short rounds: does it run, not how fast");
  return [options] { run_input(*options); };
}

}  // namespace syncopate::bench
