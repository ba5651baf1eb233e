// syncopate-bench input prints how many samples per second the input pipeline alone delivers. For
// pictures in files it is compared with other programs' pipelines, for other data with the rate at
// which a network consumes samples. The sides take turns.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/harness/bench_commands.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/harness/rounds.h"
#include "bench/input/pictures.h"
#include "bench/step/workload.h"
#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "models/zoo/zoo.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

void run_input(InputBenchOptions options) {
  require_writable(options.json_file);
  if (options.quick) {
    options.rounds = std::min(options.rounds, 3);
    options.seconds_per_round = std::min(options.seconds_per_round, 0.25);
  }
  options.input.autotune.cpus = usable_cpu_count();  // nothing is computed beside the input
  const bool has_peers = !options.peer_python.empty();
  const std::string& flag = options.data_flag;
  if (flag.starts_with("images:") || (flag.starts_with("tfds:") && has_peers)) {
    if (options.input.augment != Augment::kNone) {
      throw UsageError(
          "--augment is not measured with --data images:DIR or --peer-python; leave it out");
    }
    return measure_pictures(options);
  }
  if (has_peers) {
    throw UsageError("--peer-python reads pictures; give --data images:DIR or tfds:DIR with it");
  }
  const Workload workload = find_workload(options.model);
  const DataSplits data = open_dataset(flag, options.data);
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
                     threads_text(options.input), spread_text(spread_of(delivered)),
                     spread_text(spread_of(consumed)),
                     spread_text(ratio) + (is_quiet(rounds.foreign) ? " x" : " x NOT QUIET")}})
            << "ours: " << training.description() << '\n'
            << describe_conditions(rounds);
  if (options.json_file.empty()) return;
  json document = {{"data", data.name},
                   {"batch_size", options.input.batch_size},
                   {"input_threads",
                    options.input.autotune.threads ? json("auto") : json(options.input.threads)},
                   {"augment", name(options.input.augment)},
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
  options->lanes = usable_cpu_count();
  options->data.cache_dir = default_cache_dir(environment);
  const auto run = std::make_shared<TrainOptions>();
  flags.add("--data", &options->data_flag, "data set: " + data_patterns(" | "), {.value = "NAME"});
  flags.add("--batch-size", &options->input.batch_size, "number of samples per batch",
            {.least = 1, .most = kMostCount});
  add_flags_of_train(flags, *run, {"--input-threads", "--prefetch"});
  flags.add("--augment", enum_target(run->input.augment), "augmentation");
  add_image_flags(flags, *run);
  flags.add("--peer-python", &options->peer_python,
            "Python interpreter that has TensorFlow and PyTorch. With this flag, the input "
            "pipelines of TensorFlow and (with --data images:DIR) of PyTorch are measured on the "
            "same pictures for comparison",
            {.value = "PYTHON"});
  flags.add(
      "--model", &options->model,
      "network (its training speed in samples/s is compared with the speed of the input pipeline)",
      {.choices = workload_models()});
  flags.add("--threads", &options->lanes,
            "number of compute threads that train the network of --model",
            {.least = 1, .most = kMostCount});
  flags.add("--rounds", &options->rounds,
            "number of rounds; each round measures the input pipeline of syncopate, and then the "
            "training speed of --model or, with --peer-python, the other input pipelines",
            {.least = 1, .most = kMostCount});
  flags.add("--cache-dir", &options->data.cache_dir,
            "folder where generated samples (digits, shapes) and decoded pictures are kept for "
            "later runs",
            {.value = "DIR"});
  flags.add("--json", &options->json_file, "JSON file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick,
            "run at most 3 short rounds, only to check that the benchmark works");
  return [options, run, &flags, local = local_cache_dir(environment)] {
    const std::int64_t batch_size = options->input.batch_size;
    options->input = run->input;
    options->input.batch_size = batch_size;
    options->data.image = run->image;
    options->data.image.cache_dir = flags.has("--cache-dir") ? options->data.cache_dir : local;
    tune_encoded(flags, options->data_flag, options->input.autotune);
    run_input(*options);
  };
}

}  // namespace syncopate::bench
