// `syncopate evaluate`: measures the weights of a checkpoint on the test split of the data set on
// which they were trained.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "deploy/commands/commands.h"
#include "deploy/commands/trained_network.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "models/graph/graph_text.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/input/pictures/image_folder.h"
#include "worker/run/run_data.h"
#include "worker/train/class_table.h"
#include "worker/train/evaluate.h"
#include "worker/train/tensorboard.h"

namespace syncopate {
namespace {

[[noreturn]] void refuse_flag(const std::string& flag, const CheckpointInfo& info,
                              const std::string& recorded) {
  throw UsageError(fmt::format(
      "{} contradicts checkpoint {}, which was trained with {}; give that, or another checkpoint",
      flag, info.path.string(), recorded));
}

// Throws UsageError if a flag (--model, --head, --normalize, --data's name, --seed) contradicts the
// checkpoint.
void check_flags(const EvaluateOptions& options, const CheckpointInfo& info) {
  const Progress& run = info.progress;
  if (std::ranges::find(datasets(), run.data, &DatasetRow::name) == datasets().end()) {
    throw UsageError(fmt::format(
        "checkpoint {} was trained by a program on its own data '{}', which evaluate cannot open; "
        "the program measures it when it trains, with --eval-every",
        info.path.string(), run.data));
  }
  const bool is_file = options.model.starts_with(kNetworkFile);  // is compared with the network
  if (!options.model.empty() && !is_file && options.model != info.model) {
    refuse_flag("--model " + options.model, info, "--model " + info.model);
  }
  if (!options.data.empty() && options.data.substr(0, options.data.find(':')) != run.data) {
    refuse_flag("--data " + options.data, info, "--data " + run.data);
  }
  if (!options.network.head.empty() && options.network.head != run.head) {
    refuse_flag("--head " + options.network.head, info,
                run.head.empty() ? "no --head" : "--head " + run.head);
  }
  if (!options.network.normalize.empty() && options.network.normalize != run.normalize) {
    refuse_flag("--normalize " + options.network.normalize, info,
                run.normalize.empty() ? "no --normalize" : "--normalize " + run.normalize);
  }
  if (options.seed && *options.seed != run.seed) {
    refuse_flag(fmt::format("--seed {}", *options.seed), info, fmt::format("--seed {}", run.seed));
  }
}

// Returns how pictures are read: as the flags say, by default as the checkpoint records.
ImageOptions image_options(const EvaluateOptions& options, const CheckpointInfo& info) {
  ImageOptions image = options.image;
  RecordFields& fields = image.fields;
  if (fields.image.empty()) fields.image = info.progress.image_feature;
  if (fields.label.empty()) fields.label = info.progress.label_feature;
  if (fields.raw_shape.empty()) fields.raw_shape = info.progress.raw_shape;
  const auto row = std::ranges::find(datasets(), info.progress.data, &DatasetRow::name);
  const bool has_pictures =
      row != datasets().end() && row->takes(DataFlags::kPictures) && fields.raw_shape.empty();
  if (image.height == 0 && has_pictures) {
    const Shape shape = recorded_sample_shape(info.progress.data_samples);
    if (shape.size() == 3) image.height = shape[0], image.width = shape[1];
  }
  if (image.skip_bad_records == 0) image.skip_bad_records = info.progress.skip_bad_records;
  image.apply_exif |= info.progress.apply_exif != 0;
  return image;
}

DataSplits open_data(const EvaluateOptions& options, const CheckpointInfo& info,
                     const std::string& data_flag, ProgressDisplay& display) {
  try {
    return open_dataset(data_flag, {.cache_dir = options.cache_dir,
                                    .seed = info.progress.seed,
                                    .split = info.progress.split,
                                    .on_progress = show_progress(display, "preparing the data"),
                                    .image = image_options(options, info)});
  } catch (const UsageError& error) {
    if (!options.data.empty()) throw;
    // The user did not give this path, and a relative one leads elsewhere from another folder.
    throw UsageError(
        fmt::format("{}; checkpoint {} records --data {}; give --data for another path",
                    error.what(), info.path.string(), data_flag));
  }
}

// Throws UsageError if the training samples differ from the checkpoint's.
void check_samples(const EvaluateOptions& options, const CheckpointInfo& info,
                   const std::string& data_flag, const DataSplits& data) {
  const std::string& recorded = info.progress.data_samples;
  const std::string samples = describe_training_samples(data);
  if (samples == recorded) return;
  if (options.image.apply_exif && info.progress.apply_exif == 0 &&
      sizes_of(samples) == sizes_of(recorded)) {
    refuse_flag("--exif", info, "no --exif");
  }
  refuse_flag(fmt::format("--data {} ({})", data_flag, differing_sizes(samples, recorded)), info,
              sizes_of(recorded));
}

// Returns the checkpoint's own network, with the normalisation that it was trained with.
Graph choose_network(const EvaluateOptions& options, const CheckpointInfo& info,
                     const std::string& data_flag, const DataSplits& data) {
  Graph recorded = recorded_network(info);
  require_network_fits_data(recorded, "the network of checkpoint " + info.path.string(),
                            "--data " + data_flag, data);
  if (options.model.starts_with(kNetworkFile)) {
    const Graph given = network_for_data(options.model, data_flag, data,
                                         {info.progress.head, info.progress.normalize});
    if (const std::string difference = first_difference(recorded, given); !difference.empty()) {
      refuse_flag("--model " + options.model, info,
                  fmt::format("another network, {}, whose {}", info.model, difference));
    }
  }
  return recorded;
}

nlohmann::ordered_json number_or_null(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

// Returns the matrix as [[target, predicted class, samples], ...].
nlohmann::ordered_json counts_as_json(const ConfusionMatrix& confusion) {
  nlohmann::ordered_json counts = nlohmann::ordered_json::array();
  for (const auto& [pair, count] : confusion.counts()) {
    counts.push_back({pair.first, pair.second, count});
  }
  return counts;
}

}  // namespace

int run_evaluate(const EvaluateOptions& options, std::ostream& out) {
  const CheckpointInfo info = find_checkpoint(options.checkpoint);
  check_flags(options, info);
  const std::string data_flag = options.data.empty() ? info.progress.data_flag : options.data;
  const auto display = make_progress_display(true);
  const DataSplits data = open_data(options, info, data_flag, *display);
  check_samples(options, info, data_flag, data);
  const Graph graph = choose_network(options, info, data_flag, data);
  TrainedNetwork trained(info, graph);
  if (info.has_average) display->note("the moving average of the weights is evaluated");

  const auto backend = make_cpu_backend(options.lanes);
  const bool of_classes = has_classes(graph.loss().kind);
  PartialEvaluator evaluator(*backend, graph, trained.arena, trained.state, *data.test,
                             {.threads = options.input_threads,
                              .autotune = {.threads = options.tunes_readers(data_flag),
                                           .cpus = usable_cpu_count(),
                                           .lanes = options.lanes},
                              .counts_classes = of_classes});
  const bool draws = of_classes && !options.tensorboard.empty();
  const FileDescriptor claim = draws ? claim_curves(options.tensorboard) : FileDescriptor();
  const Evaluation test = *evaluator.run({}, show_progress(*display, "evaluating"));
  display->finish();
  const std::vector<std::string> names =
      split_class_names(info.progress.class_names, graph.num_classes());
  if (draws) {
    add_confusion_image(options.tensorboard, info.progress.at.step, *evaluator.confusion());
  }
  if (options.json) {
    nlohmann::ordered_json line = {{"checkpoint", info.path.string()},
                                   {"model", info.model},
                                   {"data", data_flag},
                                   {"step", info.progress.at.step},
                                   {fmt::format("test_{}", test.metric.name()), test.metric.value},
                                   {"test_loss", test.loss}};
    if (graph.gives_maps()) line["test_mean_iou"] = number_or_null(test.metric.mean_iou);
    line["samples"] = test.samples;
    line["bad_samples"] = test.bad_samples;
    line["first_bad"] = test.first_bad;
    line["seconds"] = test.seconds;
    if (of_classes) {
      line["classes"] = classes_as_json(evaluator.confusion()->classes(), names);
      line["confusion"] = counts_as_json(*evaluator.confusion());
    }
    out << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
    return 0;
  }
  out << fmt::format(
             "test {:<11}{}\ntest loss       {:.4f}\nsamples         {} in {:.1f} s\n"
             "trained         {} steps of {} on {}\n",
             test.metric.name(), to_text(test.metric), test.loss, test.samples, test.seconds,
             info.progress.at.step, info.model, data_flag)
      << describe_bad("test", test);
  if (of_classes) {
    out << class_table(evaluator.confusion()->classes(), names, graph.gives_maps());
  }
  return 0;
}

}  // namespace syncopate
