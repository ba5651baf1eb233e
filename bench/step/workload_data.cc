#include "bench/step/workload_data.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "bench/harness/bench_commands.h"
#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {

void add_workload_data_flags(FlagSet& flags, WorkloadData& data, const Environment& environment) {
  data.cache_dir = default_cache_dir(environment);
  data.image.cache_dir = local_cache_dir(environment);
  flags.add("--data", &data.flag, "data set to train on: " + data_patterns(" | "),
            {.value = "NAME", .default_text = "random samples of each network's usual size"});
  flags.add("--cache-dir",
            [&data](const std::string& text) { data.cache_dir = data.image.cache_dir = text; },
            "folder of rendered samples and decoded pictures",
            {.value = "DIR", .default_text = data.cache_dir.string(), .needs = "--data"});
  flags.add("--input-threads", &data.input_threads,
            "threads of each process that read the samples of --data",
            {.least = 1, .most = kMostCount});
  add_image_flags(flags, data.image, std::to_string(kDefaultImageSize));
}

std::vector<std::string> words_of(const WorkloadData& data) {
  if (data.flag.empty()) return {};
  std::vector<std::string> words = {"--data",          data.flag,
                                    "--input-threads", std::to_string(data.input_threads),
                                    "--cache-dir",     data.cache_dir.string()};
  const ImageOptions& image = data.image;
  if (image.height != 0) {
    words.insert(words.end(), {"--image-size", fmt::format("{}x{}", image.height, image.width)});
  }
  if (image.apply_exif) words.emplace_back("--exif");
  if (image.skip_bad_records > 0) {
    words.insert(words.end(), {"--skip-bad-records", std::to_string(image.skip_bad_records)});
  }
  const std::array<std::pair<const char*, std::string>, 3> fields = {
      {{"--image-feature", image.fields.image},
       {"--label-feature", image.fields.label},
       {"--raw-shape", image.fields.raw_shape}}};
  for (const auto& [flag, value] : fields) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  }
  if (image.cache_mb >= 0) {
    words.insert(words.end(), {"--cache-mb", std::to_string(image.cache_mb)});
  }
  return words;
}

Workload with_data(Workload workload, const WorkloadData& data) {
  if (data.flag.empty()) {
    if (data.image.height != 0 || data.image.apply_exif) {
      throw UsageError("--image-size and --exif require --data images:DIR");
    }
    return workload;
  }
  auto splits = std::make_shared<DataSplits>(
      open_dataset(data.flag, {.cache_dir = data.cache_dir, .image = data.image}));
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
