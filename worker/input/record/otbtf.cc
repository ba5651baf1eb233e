// otbtf:DIR: patches of satellite images with label maps, as OTBTF's TFRecords writes them: train,
// valid and test with *.records, output_types.json and output_shape.json. A record is an Example;
// its features are serialized tensors. Source: remicres/otbtf, otbtf/tfrecords.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/random.h"
#include "models/graph/graph.h"
#include "worker/input/array/class_labels.h"
#include "worker/input/array/value_statistics.h"
#include "worker/input/record/json_text.h"
#include "worker/input/record/record_samples.h"
#include "worker/input/record/shard_files.h"
#include "worker/input/record/stored_tensor.h"

namespace syncopate {
namespace {

// A tensor of output_types.json and output_shape.json.
struct PatchTensor {
  std::string type;  // "uint16"
  Shape shape;       // without the leading extents of 1, which stand for the batch
};
using PatchTensors = std::map<std::string, PatchTensor>;

// Stands for null in output_shape.json, which some versions write for the batch's extent.
constexpr std::int64_t kUnknownExtent = -1;

// Returns a shape [H, W, C] or [H, W] without leading extents that no patch has.
Shape patch_shape(Shape shape) {
  while (shape.size() > 3 && (shape.front() == 1 || shape.front() == kUnknownExtent)) {
    shape.erase(shape.begin());
  }
  return shape;
}

// Returns "[16, 16, 2]", with null as in the file.
std::string shape_text(const Shape& shape) {
  std::vector<std::string> extents;
  for (const std::int64_t extent : shape) {
    extents.push_back(extent == kUnknownExtent ? "null" : std::to_string(extent));
  }
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

PatchTensors read_tensors(const std::filesystem::path& folder) {
  const auto read = [&](const std::string& name, const auto& take) {
    const std::filesystem::path path = folder / name;
    if (!is_there(path)) {
      throw UsageError(fmt::format(
          "--data otbtf: {} has no {}; expected a folder that OTBTF's TFRecords wrote, with "
          "*.records, output_types.json and output_shape.json",
          folder.string(), name));
    }
    read_json(path, "OTBTF", take);
  };
  PatchTensors tensors;
  read("output_types.json", [&](const nlohmann::json& types) {
    for (const auto& [name, type] : types.items()) {
      tensors[name].type = type.get<std::string>();
    }
  });
  read("output_shape.json", [&](const nlohmann::json& shapes) {
    for (const auto& [name, extents] : shapes.items()) {
      Shape shape;
      for (const auto& extent : extents) {
        shape.push_back(extent.is_null() ? kUnknownExtent : extent.get<std::int64_t>());
      }
      tensors[name].shape = patch_shape(std::move(shape));
    }
  });
  return tensors;
}

std::string describe_tensors(const PatchTensors& tensors) {
  std::vector<std::string> words;
  for (const auto& [name, tensor] : tensors) {
    words.push_back(fmt::format("{} ({} {})", name, tensor.type, shape_text(tensor.shape)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// Returns the features of input and label map: those that the flags name; by default the label map
// is the only integer tensor with one channel, and the input the only other tensor.
SampleFeatures choose_tensors(const PatchTensors& tensors, const RecordFields& fields) {
  const auto has_one_channel = [](const PatchTensor& tensor) {
    return tensor.type.find("int") != std::string::npos &&
           (tensor.shape.size() == 2 || (tensor.shape.size() == 3 && tensor.shape[2] == 1));
  };
  const auto refuse = [&](std::string_view flag, std::string_view what) {
    throw UsageError(fmt::format("--data otbtf: give {} NAME, the {}; the patches have {}", flag,
                                 what, describe_tensors(tensors)));
  };
  for (const auto& [flag, name] :
       {std::pair("--image-feature", fields.image), {"--label-feature", fields.label}}) {
    if (!name.empty() && !tensors.contains(name)) {
      throw UsageError(fmt::format("{} {}: there is no such tensor; the patches have {}", flag,
                                   name, describe_tensors(tensors)));
    }
  }
  std::string label = fields.label;
  std::string image = fields.image;
  if (label.empty()) {
    for (const auto& [name, tensor] : tensors) {
      if (name == image || !has_one_channel(tensor)) continue;
      if (!label.empty()) refuse("--label-feature", "label map");
      label = name;
    }
    if (label.empty()) refuse("--label-feature", "label map");
  }
  if (image.empty()) {
    for (const auto& [name, tensor] : tensors) {
      if (name == label) continue;
      if (!image.empty()) refuse("--image-feature", "input");
      image = name;
    }
    if (image.empty()) refuse("--image-feature", "input");
  }
  return features_of({.image = image, .label = label, .raw_shape = ""}, "", "");
}

TensorSpec input_spec(const FeatureName& image, const PatchTensor& tensor) {
  constexpr std::array<std::pair<std::string_view, DType>, 3> kTypes = {
      {{"uint8", DType::kU8}, {"uint16", DType::kU16}, {"float32", DType::kF32}}};
  const bool has_size = std::ranges::all_of(tensor.shape, [](auto extent) { return extent > 0; });
  if (std::ranges::find(tensor.shape, kUnknownExtent) != tensor.shape.end()) {
    throw UsageError(
        fmt::format("{} {}: output_shape.json gives its shape as {}; all patches have one size: "
                    "write it there in place of null",
                    image.flag, image.name, shape_text(tensor.shape)));
  }
  for (const auto& [type, dtype] : kTypes) {
    if (type == tensor.type && tensor.shape.size() == 3 && has_size) {
      return {.name = "x", .dtype = dtype, .shape = tensor.shape};
    }
  }
  throw UsageError(
      fmt::format("{} {}: {} {}; expected patches [H, W, C] of uint8, uint16 or float32",
                  image.flag, image.name, tensor.type, to_string(tensor.shape)));
}

// Reads the tensor in a feature. what: names the record.
StoredTensor read_tensor(const Example& example, const FeatureName& feature,
                         const std::string& what) {
  const Feature bytes = require_one_value(example, feature, FeatureKind::kBytes, "tensor", what);
  return parse_tensor(bytes.bytes, fmt::format("{}: feature {}", what, feature.name));
}

// Returns the classes in a label map. Throws FileError for another shape or type, and for a class
// below 0 or above kLargestLabel.
std::vector<std::int32_t> read_labels(const Example& example, const FeatureName& feature,
                                      const Shape& image, const std::string& what) {
  const StoredTensor map = read_tensor(example, feature, what);
  const Shape shape = patch_shape(map.shape);
  const bool fits = shape == Shape{image[0], image[1]} || shape == Shape{image[0], image[1], 1};
  if (!fits || map.type == StoredType::kF32) {
    throw FileError(fmt::format(
        "{0}: feature {1} is {2} {3}; expected integers [{4}, {5}] or [{4}, {5}, 1], the size that "
        "output_shape.json gives the input",
        what, feature.name, name(map.type), to_string(map.shape), image[0], image[1]));
  }
  std::vector<std::int64_t> wide(static_cast<std::size_t>(image[0] * image[1]));
  with_element_type(map.type, [&]<typename Stored>(Stored /*zero*/) {
    for (std::size_t i = 0; i < wide.size(); ++i) {
      Stored value{};
      std::memcpy(&value, map.bytes().data() + i * sizeof value, sizeof value);
      wide[i] = static_cast<std::int64_t>(value);
    }
  });
  std::vector<std::int32_t> labels(wide.size());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (wide[i] < 0 || wide[i] > kLargestLabel) {
      throw FileError(fmt::format("{}: pixel {} of feature {} is {}; expected a class from 0 to {}",
                                  what, i, feature.name, wide[i], kLargestLabel));
    }
    labels[i] = static_cast<std::int32_t>(wide[i]);
  }
  return labels;
}

class PatchDataset final : public Dataset {
 public:
  PatchDataset(std::shared_ptr<const RecordShards> shards, SampleFeatures features,
               const TensorSpec& input, int num_classes)
      : shards_(std::move(shards)),
        features_(std::move(features)),
        spec_(mapped_samples(input.shape, num_classes, input.dtype)) {}

  std::int64_t size() const noexcept override { return shards_->size(); }
  const SampleSpec& spec() const noexcept override { return spec_; }

  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    const std::string what = shards_->describe(index);
    const Example example = parse_example(shards_->read(index), what);
    const TensorSpec& input = spec_.inputs[0];
    const StoredTensor patch = read_tensor(example, features_.image, what);
    const std::string_view type = input.dtype == DType::kU8    ? "uint8"
                                  : input.dtype == DType::kU16 ? "uint16"
                                                               : "float32";
    if (patch_shape(patch.shape) != input.shape || name(patch.type) != type) {
      throw FileError(
          fmt::format("{}: feature {} is {} {}; output_shape.json and "
                      "output_types.json say {} {}",
                      what, features_.image.name, name(patch.type), to_string(patch.shape), type,
                      to_string(input.shape)));
    }
    if (const auto bad = find_bad_value(input, patch.bytes())) {
      throw FileError(fmt::format("{}: value {} of feature {} is {}; expected finite numbers", what,
                                  bad->place, features_.image.name, bad->value));
    }
    apply_draw(draw, input, patch.bytes(), sample.inputs[0]);
    std::vector<std::int32_t> labels = read_labels(example, features_.label, input.shape, what);
    apply_draw_to_labels(draw, static_cast<int>(input.shape[0]), static_cast<int>(input.shape[1]),
                         labels);
    std::memcpy(sample.target.data(), labels.data(), sample.target.size());
  }

  std::int32_t label(std::int64_t index) const override {
    const std::string what = shards_->describe(index);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(spec_.num_classes));
    for (const std::int32_t each : read_labels(parse_example(shards_->read(index), what),
                                               features_.label, spec_.inputs[0].shape, what)) {
      if (each != kUncounted) ++counts.at(static_cast<std::size_t>(each));
    }
    return static_cast<std::int32_t>(std::ranges::max_element(counts) - counts.begin());
  }

  std::uint64_t fingerprint(std::int64_t index) const override {
    const std::vector<std::byte> record = shards_->read(index);
    return hash_name({reinterpret_cast<const char*>(record.data()), record.size()});
  }

 private:
  std::shared_ptr<const RecordShards> shards_;
  SampleFeatures features_;
  SampleSpec spec_;
};

// What the index has of a record: the largest class of its label map, and how many of its pixels do
// not count.
struct LabelSummary {
  std::int64_t largest = 0;
  std::int64_t num_uncounted = 0;

  std::int64_t packed() const noexcept { return num_uncounted * kClasses + largest; }
  static LabelSummary unpacked(std::int64_t value) noexcept {
    return {value % kClasses, value / kClasses};
  }

 private:
  static constexpr std::int64_t kClasses = std::int64_t{kLargestLabel} + 1;
};

// Returns the largest class and the sum of the uncounted pixels of some splits, which may be null.
LabelSummary summary_of(std::initializer_list<const RecordShards*> splits) {
  LabelSummary sum;
  for (const RecordShards* const shards : splits) {
    for (std::int64_t i = 0; shards != nullptr && i < shards->size(); ++i) {
      const LabelSummary one = LabelSummary::unpacked(shards->value(i));
      sum.largest = std::max(sum.largest, one.largest);
      sum.num_uncounted += one.num_uncounted;
    }
  }
  return sum;
}

// Returns the files of a split; none if there is no such folder.
std::vector<std::filesystem::path> patch_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names_in_folder(folder)) {
    if (std::filesystem::path(name).extension() == ".records") files.push_back(folder / name);
  }
  if (!files.empty()) warn_about_gaps("otbtf", files);
  require_all_shards(
      "otbtf", files, [](const std::string& /*path*/) { return true; },
      "fetch what is missing, or remove the number of shards from the names of the others");
  return files;
}

}  // namespace

DataSplits open_otbtf(std::string_view folder_name, const DataOptions& options) {
  check_is_folder("otbtf", folder_name);
  const std::filesystem::path folder = folder_name;
  const PatchTensors tensors = read_tensors(folder / "train");
  const SampleFeatures features = choose_tensors(tensors, options.image.fields);
  const TensorSpec input = input_spec(features.image, tensors.at(features.image.name));
  const auto summary = [&](const RecordFile& file, const RecordPlace& place,
                           std::span<const std::byte> bytes) -> std::int64_t {
    const std::optional<Example> example = Example::parse(bytes);
    if (!example) return kDamagedRecord;
    LabelSummary found;
    for (const std::int32_t each :
         read_labels(*example, features.label, input.shape, file.describe(place))) {
      if (each == kUncounted) {
        ++found.num_uncounted;
      } else {
        found.largest = std::max<std::int64_t>(found.largest, each);
      }
    }
    return found.packed();
  };
  IndexOptions index = index_options(
      options,
      fmt::format("classes and uncounted of {} in {}", features.label.name, to_string(input.shape)),
      summary);
  UnpackedBudget budget = unpacked_budget(options);
  const auto open = [&](const std::string& name) -> std::shared_ptr<const RecordShards> {
    const std::vector<std::filesystem::path> files = patch_files(folder / name);
    if (files.empty()) return nullptr;
    auto shards = std::make_shared<const RecordShards>(files, index, budget);
    require_intact(*shards);
    if (shards->size() > 0) warn_about_empty_files(*shards);
    return shards->size() == 0 ? nullptr : shards;
  };
  const auto train = open("train");
  auto validation = open("valid");
  auto test = open("test");
  if (test == nullptr && validation != nullptr) {
    log(LogLevel::kInfo, fmt::format("--data otbtf: {} has no records; tested on valid",
                                     (folder / "test").string()));
    test = std::move(validation);
  }
  if (train == nullptr || test == nullptr) {
    throw UsageError(
        fmt::format("--data otbtf: {} has no records; expected *.records in train, and "
                    "in valid or test",
                    (folder / (train == nullptr ? "train" : "test")).string()));
  }
  const LabelSummary all = summary_of({train.get(), validation.get(), test.get()});
  if (all.num_uncounted > 0) {
    log(LogLevel::kInfo, fmt::format("--data otbtf: {} pixels of {} have class {} and do not count",
                                     all.num_uncounted, features.label.name, kUncounted));
  }
  const auto make = [&](const std::shared_ptr<const RecordShards>& shards) {
    auto split =
        std::make_unique<PatchDataset>(shards, features, input, static_cast<int>(all.largest + 1));
    require_readable(*split, *shards);
    return split;
  };
  DataSplits splits{.name = "otbtf", .train = make(train), .test = make(test)};
  if (validation != nullptr) splits.validation = make(validation);
  set_value_statistics(splits);
  splits.suits_crop_flip = true;
  return splits;
}

}  // namespace syncopate
