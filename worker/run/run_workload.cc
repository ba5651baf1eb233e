#include "worker/run/run_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "worker/run/run_data.h"

namespace syncopate {
namespace {

// Returns what must be equal in all splits, such as "x f32 [2] with y i32 [] of 2 classes".
std::string describe_samples(const SampleSpec& spec) {
  std::string text;
  for (const TensorSpec& input : spec.inputs) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", input.name, name(input.dtype),
                        to_string(input.shape));
  }
  return text + fmt::format(" with {} {} {} of {} classes", spec.target.name,
                            name(spec.target.dtype), to_string(spec.target.shape),
                            spec.num_classes);
}

void check_splits(const DataSplits& data) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("the program's data '{}': {}", data.name, why));
  };
  if (data.name.empty()) refuse("the name is empty; set DataSplits::name");
  // Checkpoints record the name, and `syncopate evaluate` opens the data set that it names.
  if (std::ranges::find(datasets(), data.name, &DatasetRow::name) != datasets().end()) {
    refuse("--data has a data set of this name; set another DataSplits::name");
  }
  if (data.train == nullptr || data.test == nullptr) {
    refuse("expected training and test samples; set DataSplits::train and test");
  }
  for (const Dataset* split : {data.train.get(), data.validation.get(), data.test.get()}) {
    if (split == nullptr) continue;
    if (split->size() < 1) refuse("a split has no samples; expected at least one in each");
    if (split->spec().inputs.empty()) refuse("a sample has no inputs; set SampleSpec::inputs");
    const DType target = split->spec().target.dtype;
    if (target != DType::kI32 && target != DType::kF32) {
      refuse(fmt::format("targets are {}; expected i32, classes, or f32, numbers", name(target)));
    }
    if (describe_samples(split->spec()) != describe_samples(data.train->spec())) {
      refuse(fmt::format(
          "training samples are {}, those of the {} split {}", describe_samples(data.train->spec()),
          split == data.test.get() ? "test" : "validation", describe_samples(split->spec())));
    }
  }
}

// The program builds the network node by node, so a shape that does not fit is its mistake.
Graph network_of(const Workload& own, const DataSplits& data) {
  try {
    return own.make_network(data);
  } catch (const ShapeError& error) {
    throw UsageError(
        fmt::format("the program's network for its data '{}': {}", data.name, error.what()));
  }
}

}  // namespace

Workload named_workload(const TrainOptions& options) {
  return {
      .open_data = [&options](const DataOptions& how) { return open_dataset(options.data, how); },
      .make_network =
          [&options](const DataSplits& data) {
            return network_for_data(options.model, options.data, data, options.network,
                                    options.label_smoothing);
          }};
}

Workload checked_workload(const Workload& own, const TrainOptions& options) {
  if (!own.open_data || !own.make_network) {
    throw UsageError("the program's workload lacks a function; set open_data and make_network");
  }
  return {.open_data =
              [&own](const DataOptions& how) {
                DataSplits data = own.open_data(how);
                check_splits(data);
                if (!how.split.empty()) split_validation(data, how.split, how.seed);
                return data;
              },
          .make_network =
              [&own, &options](const DataSplits& data) {
                Graph graph = network_of(own, data);
                const std::string what = fmt::format("the program's network '{}'", graph.name);
                if (graph.name.empty()) {
                  throw UsageError(what + ": the name is empty; give GraphBuilder one");
                }
                require_network_fits_data(graph, what, "its data '" + data.name + "'", data);
                return with_label_smoothing(std::move(graph), what, options.label_smoothing);
              }};
}

}  // namespace syncopate
