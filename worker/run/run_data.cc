#include "worker/run/run_data.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/graph/graph_text.h"
#include "models/zoo/zoo.h"

namespace syncopate {

namespace {

// Hashes 17 samples of a data set: the first, the last and 15 between.
std::uint64_t hash_samples(const Dataset& dataset) {
  constexpr std::int64_t kSpread = 16;
  std::string all;
  for (std::int64_t i = 0; i <= kSpread; ++i) {
    const std::int64_t index = (dataset.size() - 1) * i / kSpread;
    all += fmt::format("{}:{}", dataset.label(index), dataset.fingerprint(index));
  }
  return hash_name(all);
}

bool has_numbers(const SampleSpec& spec) { return spec.target.dtype == DType::kF32; }

// Returns "10 classes" or "3 targets".
std::string describe_targets(const SampleSpec& spec) {
  if (!has_numbers(spec)) return fmt::format("{} classes", spec.num_classes);
  const std::int64_t count = num_elements(spec.target.shape);
  return fmt::format("{} target{}", count, count == 1 ? "" : "s");
}

std::string describe_sizes(std::string_view samples, const Dataset& dataset) {
  const TensorSpec& input = dataset.spec().inputs.front();
  // u8, which most data sets have, is not named.
  const std::string dtype = input.dtype == DType::kU8 ? "" : std::string(name(input.dtype)) + " ";
  return fmt::format("{} samples of {}{} {}", samples, dtype, to_string(input.shape),
                     has_numbers(dataset.spec()) ? "with " + describe_targets(dataset.spec())
                                                 : "in " + describe_targets(dataset.spec()));
}

}  // namespace

std::string describe_samples(const DataSplits& data) {
  const std::string samples = fmt::format("{} + {}", data.train->size(), data.test->size());
  std::string text = fmt::format("{}, {}, {}", describe_sizes(samples, *data.train),
                                 hash_samples(*data.train), hash_samples(*data.test));
  if (data.validation != nullptr) {
    text += fmt::format(", {} samples for validation, {}", data.validation->size(),
                        hash_samples(*data.validation));
  }
  return text;
}

std::string hash_of_all_samples(const DataSplits& data) {
  std::string samples;
  for (const Dataset* split : {data.train.get(), data.validation.get(), data.test.get()}) {
    const std::int64_t size = split == nullptr ? 0 : split->size();
    samples += fmt::format("{}\n", size);
    for (std::int64_t i = 0; i < size; ++i) {
      samples += fmt::format(FMT_COMPILE("{}:{:x}\n"), split->label(i), split->fingerprint(i));
    }
  }
  return fmt::format("{:016x}", hash_name(samples));
}

std::string describe_data(const DataSplits& data, const std::string& data_flag) {
  const SampleSpec& spec = data.train->spec();
  const TensorSpec& input = spec.inputs.front();
  const std::string validation = data.validation == nullptr
                                     ? " and"
                                     : fmt::format(", {} validation and", data.validation->size());
  return fmt::format("data {}: {} training{} {} test samples, {} {}, {}{}", data_flag,
                     data.train->size(), validation, data.test->size(), name(input.dtype),
                     to_string(input.shape), describe_targets(spec),
                     data.target_place.empty() ? "" : " in " + data.target_place);
}

std::string describe_training_samples(const DataSplits& data) {
  const std::string samples = fmt::format("{}", data.train->size());
  return fmt::format("{}, {}", describe_sizes(samples, *data.train), hash_samples(*data.train));
}

Shape recorded_sample_shape(const std::string& training_samples) {
  long long height = 0;
  long long width = 0;
  long long channels = 0;
  if (std::sscanf(training_samples.c_str(), "%*d samples of [%lld, %lld, %lld]", &height, &width,
                  &channels) != 3) {
    return {};
  }
  return {height, width, channels};
}

std::string sizes_of(const std::string& samples) {
  return samples.substr(0, samples.find(", ", samples.find(']')));
}

std::string differing_sizes(const std::string& samples, const std::string& others) {
  const std::string sizes = sizes_of(samples);
  return sizes == sizes_of(others) ? "as many, but other contents or labels" : sizes;
}

void require_same_data(const DataSplits& data, const std::string& data_flag,
                       Membership& membership) {
  // Each task sends two lines: all properties with hashes, and its --data.
  const std::vector<std::string> all =
      membership.exchange(fmt::format("{}\n{}", describe_samples(data), data_flag));
  const auto line_of = [&](std::size_t task, int line) {
    std::istringstream lines(all[task]);
    std::string text;
    for (int i = 0; i <= line; ++i) std::getline(lines, text);
    return text;
  };
  for (std::size_t task = 1; task < all.size(); ++task) {
    if (line_of(task, 0) == line_of(0, 0)) continue;
    throw UsageError(fmt::format(
        "--data: rank {} has --data {} with {}, rank 0 has --data {} with {}; give every task the "
        "same data",
        task, line_of(task, 1), sizes_of(line_of(task, 0)), line_of(0, 1),
        differing_sizes(line_of(0, 0), line_of(task, 0))));
  }
}

std::string describe_network(const Graph& graph) {
  return fmt::format("{} with hash {}", graph.name, network_hash(to_text(graph)));
}

void require_same_network(const Graph& graph, Membership& membership) {
  const std::vector<std::string> all = membership.exchange(describe_network(graph));
  for (std::size_t task = 1; task < all.size(); ++task) {
    if (all[task] == all[0]) continue;
    throw UsageError(fmt::format(
        "network: rank {} has {}, rank 0 has {}; start the same program with the same flags as "
        "every task",
        task, all[task], all[0]));
  }
}

void require_images_for(Augment augment, const DataSplits& data, const std::string& data_flag) {
  const Shape& shape = data.train->spec().inputs.front().shape;
  if (augment == Augment::kRandomResizedCrop && data.train->spec().target.shape.size() == 2) {
    throw UsageError(
        fmt::format("--augment {}: samples of data {} have label maps; choose crop-flip or none",
                    name(augment), data_flag));
  }
  if (augment == Augment::kNone || shape.size() == 3) return;
  throw UsageError(fmt::format(
      "--augment {} needs images [H, W, C]; samples of data {} are {}; leave the flag out",
      name(augment), data_flag, to_string(shape)));
}

namespace {

// Calls `refuse` unless the network predicts as many numbers as a target has, in the range of its
// loss.
void require_numbers_fit(const Graph& graph, const DataSplits& data,
                         const std::function<void(const std::string&)>& refuse) {
  const Shape& targets = data.train->spec().target.shape;
  if (graph.logits_shape() != targets) {
    refuse(fmt::format("it predicts {}, and the targets are {}", to_string(graph.logits_shape()),
                       to_string(targets)));
  }
  if (graph.loss().kind != LossKind::kBinaryCrossEntropy) return;
  for (const Dataset* split : {data.train.get(), data.validation.get(), data.test.get()}) {
    if (split == nullptr) continue;
    const SampleSpec& spec = split->spec();
    if (spec.least_target >= 0.0F && spec.largest_target <= 1.0F) continue;
    refuse(fmt::format("{} needs targets from 0 to 1, and the data have targets from {} to {}",
                       name(graph.loss().kind), spec.least_target, spec.largest_target));
  }
}

}  // namespace

void require_network_fits_data(const Graph& graph, const std::string& what,
                               const std::string& samples, const DataSplits& data) {
  const SampleSpec& spec = data.train->spec();
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{} does not fit {}: {}", what, samples, why));
  };
  if (graph.num_inputs() != spec.inputs.size()) {
    refuse(
        fmt::format("it has {} inputs, a sample has {}", graph.num_inputs(), spec.inputs.size()));
  }
  const std::vector<NodeId> inputs = graph.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = graph.nodes[static_cast<std::size_t>(inputs[i])];
    const DType dtype = std::get<InputOp>(node.operation).dtype;
    const TensorSpec& tensor = spec.inputs[i];
    if (node.name == tensor.name && node.shape == tensor.shape && dtype == tensor.dtype) continue;
    refuse(fmt::format("it has input {} {} {}, a sample has {} {} {}", node.name, name(dtype),
                       to_string(node.shape), tensor.name, name(tensor.dtype),
                       to_string(tensor.shape)));
  }
  const std::string why = why_loss_does_not_fit(graph.loss().kind, spec.target.dtype);
  if (!why.empty()) refuse(why + data.classes_advice);
  if (has_numbers(spec)) return require_numbers_fit(graph, data, refuse);
  if (graph.target_shape() != spec.target.shape) {
    if (spec.target.shape.empty()) {
      refuse("it gives a class for each pixel, and the data have one for each sample");
    }
    if (graph.target_shape().empty()) {
      refuse(
          "it gives a class for each sample, and the data have one for each pixel; choose --model "
          "fcn or unet, or a network that ends with a map");
    }
    refuse(fmt::format("it gives label maps of {}, and those of the data are {}",
                       to_string(graph.target_shape()), to_string(spec.target.shape)));
  }
  if (graph.num_classes() != spec.num_classes) {
    refuse(
        fmt::format("it has {} classes, the data have {}", graph.num_classes(), spec.num_classes));
  }
}

void require_classes(const std::string& what, const std::string& data_flag,
                     const DataSplits& data) {
  if (!has_numbers(data.train->spec())) return;
  throw UsageError(fmt::format("{} needs classes as targets, and those of --data {} are numbers",
                               what, data_flag));
}

Graph network_for_data(const std::string& model, const std::string& data_flag,
                       const DataSplits& data, const NetworkFlags& flags, float label_smoothing) {
  if (has_numbers(data.train->spec()) && !model.starts_with(kNetworkFile)) {
    throw UsageError(fmt::format(
        "--model {0} does not fit --data {1}: its loss is {2}, and the targets are numbers; choose "
        "a loss in a network file: syncopate network --model {0} --data {1} --json > net.json, and "
        "train it: --model file:net.json{3}",
        model, data_flag, name(LossKind::kSoftmaxCrossEntropy), data.classes_advice));
  }
  return with_label_smoothing(network_template(model, data_flag, data, flags), "--model " + model,
                              label_smoothing);
}

Graph with_label_smoothing(Graph graph, const std::string& what, float label_smoothing) {
  if (label_smoothing != 0.0F && !has_classes(graph.loss().kind)) {
    throw UsageError(fmt::format("--label-smoothing is for classes, and the loss of {} is {}", what,
                                 name(graph.loss().kind)));
  }
  graph.set_label_smoothing(label_smoothing);
  try {
    (void)parse_graph(to_text(graph));  // as from a checkpoint of this run
  } catch (const Error& error) {
    throw UsageError(
        fmt::format("{} is beyond what a checkpoint can hold: {}", what, error.what()));
  }
  return graph;
}

Graph network_template(const std::string& model, const std::string& data_flag,
                       const DataSplits& data, const NetworkFlags& flags) {
  const SampleSpec& spec = data.train->spec();
  const TensorSpec& input = spec.inputs.front();
  if (!has_numbers(spec) && spec.num_classes < 2) {
    throw UsageError(
        fmt::format("--data {}: all labels are 0; expected at least two classes", data_flag));
  }
  Normalization normalization =
      choose_normalization(flags.normalize, {data.mean, data.stddev}, data.mean.size());
  const auto outputs =
      has_numbers(spec) ? static_cast<int>(num_elements(spec.target.shape)) : spec.num_classes;
  try {
    Graph graph = build_network(model, {.sample_shape = input.shape,
                                        .classes = outputs,
                                        .input = {input.dtype, std::move(normalization.mean),
                                                  std::move(normalization.stddev)},
                                        .target_shape = spec.target.shape,
                                        .head = parse_head(flags.head),
                                        .target_dtype = spec.target.dtype,
                                        .takes_image_size = data.takes_image_size});
    require_network_fits_data(graph, "--model " + model, "--data " + data_flag, data);
    return graph;
  } catch (const ShapeError& error) {
    throw UsageError(fmt::format(
        "--model {} does not fit --data {}: {}{}", model, data_flag, error.what(),
        input.shape.size() == 3 || model.starts_with(kNetworkFile) ? "" : "; give --model mlp"));
  }
}

}  // namespace syncopate
