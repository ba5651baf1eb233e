#include "bench/step/workload_data.h"

#include <memory>
#include <string>
#include <utility>

#include "bench/harness/bench_commands.h"
#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "worker/run/flags/train_flag.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {

void add_workload_data_flags(FlagSet& flags, WorkloadData& data, const Environment& environment) {
  TrainOptions& run = data.run;
  run.cache_dir = default_cache_dir(environment);
  run.image.cache_dir = local_cache_dir(environment);
  flags.add("--data", &data.flag, "data set to train on: " + data_patterns(" | "),
            {.value = "NAME", .default_text = "random samples of each network's usual size"});
  flags.add("--cache-dir",
            [&run](const std::string& text) { run.cache_dir = run.image.cache_dir = text; },
            "folder where generated samples and decoded pictures are kept for later runs",
            {.value = "DIR", .default_text = run.cache_dir.string(), .needs = "--data"});
  flags.add("--input-threads", &data.input_threads,
            "number of threads with which each process reads the samples of --data",
            {.least = 1, .most = kMostCount});
  add_image_flags(flags, run);
}

std::vector<std::string> words_of(const WorkloadData& data) {
  if (data.flag.empty()) return {};
  TrainOptions only;
  only.image = data.run.image;
  std::vector<std::string> words = {"--data",          data.flag,
                                    "--input-threads", std::to_string(data.input_threads),
                                    "--cache-dir",     data.run.cache_dir.string()};
  FlagSet flags("", "");
  add_image_flags(flags, only);
  for (const Flag& flag : flags.flags()) {
    const auto text = find_train_flag(flag.name)->text_of(only);
    if (text) words.push_back(flag.name);
    if (text && !flag.is_switch()) words.push_back(*text);
  }
  return words;
}

Workload with_data(Workload workload, const WorkloadData& data) {
  if (data.flag.empty()) {
    if (data.run.image.height != 0 || data.run.image.apply_exif) {
      throw UsageError("--image-size and --exif require --data images:DIR");
    }
    return workload;
  }
  auto splits = std::make_shared<DataSplits>(
      open_dataset(data.flag, {.cache_dir = data.run.cache_dir, .image = data.run.image}));
  const SampleSpec& spec = splits->train->spec();
  workload.sample_shape = spec.inputs.front().shape;
  workload.classes = spec.num_classes;
  workload.data = std::move(splits);
  workload.data_flag = data.flag;
  workload.input_threads = data.input_threads;
  build_graph(workload);  // throws when the network does not fit
  return workload;
}

}  // namespace syncopate::bench
