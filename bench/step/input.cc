// syncopate-bench input prints how many samples per second the input pipeline alone delivers, and
// the ratio of this rate to the rate at which a network consumes samples. The two take turns.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "bench/harness/bench_commands.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/harness/rounds.h"
#include "bench/step/workload.h"
#include "deploy/cli/command_line.h"
#include "models/zoo/zoo.h"
#include "worker/input/batch_source.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {
namespace {

struct InputBenchOptions {
  std::string data = "digits";
  std::string model = "mnist-cnn";  // The model that consumes the samples.
  std::string augment = "none";
  std::filesystem::path cache_dir;
  std::string json_file;
  int rounds = 7;
  double seconds_per_round = 1.0;
  bool quick = false;
  int lanes = 1;
  InputOptions input;
};

// Measures the input pipeline and prints the result. Throws UsageError, FileError.
void run_input(InputBenchOptions options);

using nlohmann::json;

// Returns the pipeline's samples per second over about `seconds`, after one uncounted batch that
// starts the threads.
double take_batches(BatchSource& source, double seconds) {
  std::int64_t samples = 0;
  double passed = 0.0;
  source.next();
  const auto start = SteadyClock::now();
  while (passed < seconds) {
    samples += source.next().num_samples;
    passed = seconds_since(start);
  }
  return static_cast<double>(samples) / passed;
}

void run_input(InputBenchOptions options) {
  require_writable(options.json_file);
  if (options.quick) {
    options.rounds = std::min(options.rounds, 3);
    options.seconds_per_round = std::min(options.seconds_per_round, 0.25);
  }
  const Workload workload = find_workload(options.model);
  options.input.augment = options.augment == "crop-flip" ? Augment::kCropFlip : Augment::kNone;
  const DataSplits data = open_dataset(options.data, {.cache_dir = options.cache_dir});
  const std::unique_ptr<BatchSource> source = make_batch_source(*data.train, options.input);
  WorkloadTraining training(workload, {.lanes = options.lanes});

  const auto samples = static_cast<double>(workload.batch_size);
  const Rounds rounds =
      take_rounds(options.rounds,
                  {[&] { return take_batches(*source, options.seconds_per_round); },
                   [&] { return samples / median(training.run(workload.steps_per_round)); }},
                  {});
  const std::vector<double> delivered = rounds.counted(0);
  const std::vector<double> consumed = rounds.counted(1);
  const Spread ratio = ratio_of(delivered, consumed);
  std::cout << format_table(
                   {{"data", "batch", "input threads", "samples/s [min-max]",
                     options.model + " eats samples/s", "ratio [min-max]"},
                    {data.name, std::to_string(options.input.batch_size),
                     std::to_string(options.input.threads), spread_text(spread_of(delivered)),
                     spread_text(spread_of(consumed)),
                     spread_text(ratio) + (is_quiet(rounds.foreign) ? " x" : " x NOT QUIET")}})
            << "ours: " << training.description() << '\n'
            << describe_conditions(rounds);
  if (options.json_file.empty()) return;
  json document = {{"data", data.name},
                   {"batch_size", options.input.batch_size},
                   {"input_threads", options.input.threads},
                   {"augment", options.augment},
                   {"model", options.model},
                   {"device", training.description()},
                   {"delivered_per_second_per_round", rounds.sides[0]},
                   {"eaten_per_second_per_round", rounds.sides[1]},
                   {"ratio", spread_json(ratio)}};
  document.update(conditions_json(rounds));
  write_report(options.json_file, document.dump(2));
}

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
            {.least = 1, .most = kMostCount});
  flags.add("--input-threads", &options->input.threads, "threads that read and augment samples",
            {.least = 1, .most = kMostCount});
  flags.add("--prefetch", &options->input.prefetch, "batches that are prepared ahead",
            {.least = 1, .most = kMostCount});
  flags.add("--augment", &options->augment, "augmentation", {.choices = {"none", "crop-flip"}});
  flags.add("--model", &options->model, "network that consumes samples of its usual size",
            {.choices = names_of(networks())});
  flags.add("--threads", &options->lanes, "compute threads of the network",
            {.least = 1, .most = kMostCount});
  flags.add("--rounds", &options->rounds, "turns of each side", {.least = 1, .most = kMostCount});
  flags.add("--cache-dir", &options->cache_dir, "folder of rendered samples", {.value = "DIR"});
  flags.add("--json", &options->json_file, "file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick, "3 short rounds, to see that the benchmark runs");
  return [options] { run_input(*options); };
}

}  // namespace syncopate::bench
