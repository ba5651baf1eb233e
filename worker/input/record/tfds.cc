// tfds:DIR: a folder as tfds.load of TensorFlow Datasets leaves it: dataset_info.json,
// features.json, LABEL.labels.txt and the shards of each split.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/input/pictures/picture_dataset.h"
#include "worker/input/record/json_text.h"
#include "worker/input/record/record_samples.h"
#include "worker/input/record/shard_files.h"

namespace syncopate {
namespace {

// A split of dataset_info.json.
struct TfdsSplit {
  std::string name;
  std::vector<std::int64_t> shard_lengths;  // records of each shard
  std::vector<std::filesystem::path> files;
};

struct TfdsFolder {
  std::filesystem::path path;
  std::vector<TfdsSplit> splits;
  SampleFeatures features;
  std::vector<std::string> class_names;
  std::int64_t num_classes = 0;  // 0: as many as the labels have
};

[[noreturn]] void refuse_tfds(const std::filesystem::path& path, std::string_view reason) {
  throw UsageError(fmt::format("--data tfds: {}: {}", path.string(), reason));
}

// Returns DIR if it has a data set, else the one folder in it that has.
std::filesystem::path version_folder(const std::filesystem::path& folder) {
  constexpr const char* kInfo = "dataset_info.json";
  if (is_there(folder / kInfo)) return folder;
  std::vector<std::string> versions;
  for (const std::string& name : names_in_folder(folder)) {
    if (is_there(folder / name / kInfo)) versions.push_back(name);
  }
  if (versions.size() == 1) return folder / versions.front();
  refuse_tfds(folder,
              versions.empty()
                  ? "neither the folder nor one in it has a dataset_info.json; expected the "
                    "folder of a data set, such as ~/tensorflow_datasets/cassava/0.1.0"
                  : fmt::format("it has {} versions, {}; give the folder of one of them",
                                versions.size(), fmt::join(versions, ", ")));
}

std::string filled_in(std::string text, std::string_view name, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size()) {
    text.replace(at, name.size(), value);
  }
  return text;
}

// Returns the shards of a split. Throws UsageError if some are missing.
std::vector<std::filesystem::path> shard_files(const std::filesystem::path& folder,
                                               const std::string& pattern, std::size_t count) {
  std::vector<std::filesystem::path> files;
  std::size_t found = 0;
  std::string first_missing;
  for (std::size_t i = 0; i < count; ++i) {
    std::string name =
        filled_in(pattern, "{SHARD_X_OF_Y}", fmt::format("{:05}-of-{:05}", i, count));
    name = filled_in(std::move(name), "{SHARD_INDEX}", fmt::format("{:05}", i));
    name = filled_in(std::move(name), "{NUM_SHARDS}", fmt::format("{:05}", count));
    files.push_back(folder / name);
    if (is_there(files.back())) {
      ++found;
    } else if (first_missing.empty()) {
      first_missing = name;
    }
  }
  if (found < count) {
    refuse_tfds(folder, fmt::format("{} of {} shards are there; the first that is missing is {}; "
                                    "fetch what is missing, or make the data set again with "
                                    "tfds.load",
                                    found, count, first_missing));
  }
  return files;
}

// The features that tfds.load(as_supervised=True) gives; "" where the data set names none.
struct SupervisedKeys {
  std::string input;
  std::string target;
};

// Source: SupervisedKeys of tensorflow_datasets/core/proto/dataset_info.proto: "input" and
// "output", or a tuple of feature keys.
SupervisedKeys supervised_keys(const nlohmann::json& info) {
  const nlohmann::json keys = info.value("supervisedKeys", nlohmann::json::object());
  if (const nlohmann::json tuple = keys.value("tuple", nlohmann::json::object());
      tuple.contains("items")) {
    const nlohmann::json& items = tuple.at("items");
    if (items.size() < 2) return {};
    return {items.at(0).value("featureKey", ""), items.at(1).value("featureKey", "")};
  }
  return {keys.value("input", ""), keys.value("output", "")};
}

std::vector<TfdsSplit> read_splits(const std::filesystem::path& path, const nlohmann::json& info) {
  const std::filesystem::path folder = path.parent_path();
  const std::string format = info.value("fileFormat", "tfrecord");
  if (format != "tfrecord") {
    refuse_tfds(folder, fmt::format("its fileFormat is {}; expected tfrecord: make it again in a "
                                    "new folder with tfds.load(..., data_dir=DIR, "
                                    "builder_kwargs={{'file_format': 'tfrecord'}})",
                                    format));
  }
  std::vector<TfdsSplit> splits;
  for (const nlohmann::json& entry : info.at("splits")) {
    TfdsSplit split{.name = entry.at("name").get<std::string>()};
    for (const nlohmann::json& length : entry.at("shardLengths")) {
      split.shard_lengths.push_back(
          count_of(length, std::numeric_limits<std::int64_t>::max(),
                   fmt::format("{}: a shard length of split {}", path.string(), split.name)));
    }
    std::string pattern = entry.value("filepathTemplate", "");
    if (pattern.empty()) pattern = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";
    pattern = filled_in(std::move(pattern), "{DATASET}", info.at("name").get<std::string>());
    pattern = filled_in(std::move(pattern), "{SPLIT}", split.name);
    pattern = filled_in(std::move(pattern), "{FILEFORMAT}", format);
    split.files = shard_files(folder, pattern, split.shard_lengths.size());
    splits.push_back(std::move(split));
  }
  return splits;
}

// Returns the feature of this type: the one with the usual name, else the first; the usual name if
// there is none.
std::string listed_name(const std::vector<TfdsFeature>& listed, std::string_view type,
                        const std::string& usual) {
  std::string first;
  for (const TfdsFeature& feature : listed) {
    if (feature.type != type) continue;
    if (feature.name == usual) return usual;
    if (first.empty()) first = feature.name;
  }
  return first.empty() ? usual : first;
}

// Logs which of several features of a type is used, unless the user named it.
void note_choice(const std::vector<TfdsFeature>& listed, std::string_view type,
                 const FeatureName& chosen, const std::string& named) {
  std::vector<std::string> others;
  for (const TfdsFeature& feature : listed) {
    if (feature.type == type && feature.name != chosen.name) others.push_back(feature.name);
  }
  if (others.empty() || !named.empty()) return;
  log(LogLevel::kInfo, fmt::format("--data tfds: {} {} is used; the data set also has {}",
                                   chosen.flag, chosen.name, fmt::join(others, ", ")));
}

// Logs which splits are left out, and that the validation split is tested on where there is no
// other.
void note_splits(const TfdsFolder& folder, std::string_view tested) {
  constexpr std::array<std::string_view, 3> kUsed = {"train", "validation", "test"};
  std::vector<std::string> others;
  for (const TfdsSplit& split : folder.splits) {
    if (std::ranges::find(kUsed, split.name) == kUsed.end()) others.push_back(split.name);
  }
  if (others.empty() && tested == "test") return;
  std::string note = fmt::format("--data tfds: trained on split train, tested on {}",
                                 tested.empty() ? "one in ten of it" : tested);
  if (!others.empty()) {
    note += fmt::format("; not used: {}, which --data 'tfrecord:{}/*-{}.*' reads",
                        fmt::join(others, ", "), folder.path.string(), others.front());
  }
  log(LogLevel::kInfo, note);
}

TfdsFolder read_folder(const std::filesystem::path& folder, const RecordFields& fields) {
  TfdsFolder result{.path = version_folder(folder), .splits = {}, .features = {}};
  const std::filesystem::path info = result.path / "dataset_info.json";
  SupervisedKeys keys;
  read_json(info, kTfdsWriter, [&](const nlohmann::json& text) {
    result.splits = read_splits(info, text);
    keys = supervised_keys(text);
  });
  const std::filesystem::path features = result.path / "features.json";
  std::vector<TfdsFeature> listed;
  if (is_there(features)) listed = read_tfds_features(features);
  result.features =
      features_of(fields, listed_name(listed, "Image", keys.input.empty() ? "image" : keys.input),
                  listed_name(listed, "ClassLabel", keys.target.empty() ? "label" : keys.target));
  note_choice(listed, "Image", result.features.image, fields.image);
  note_choice(listed, "ClassLabel", result.features.label, fields.label);
  const std::string& label = result.features.label.name;
  const auto entry = std::ranges::find(listed, label, &TfdsFeature::name);
  if (entry != listed.end()) result.num_classes = entry->num_classes;
  result.class_names = read_class_names(result.path, label);
  const auto names = static_cast<std::int64_t>(result.class_names.size());
  if (result.num_classes == 0) result.num_classes = names;
  if (names != 0 && names != result.num_classes) {
    throw FileError(
        fmt::format("{}: features.json has {} classes, and {} has {} names; fetch both "
                    "again, or remove the file of names",
                    result.path.string(), result.num_classes, class_names_file(label), names));
  }
  return result;
}

}  // namespace

DataSplits open_tfds(std::string_view folder_name, const DataOptions& options) {
  check_is_folder("tfds", folder_name);
  const TfdsFolder folder = read_folder(folder_name, options.image.fields);
  const ImageOptions image = options.image.with_size();
  UnpackedBudget budget = unpacked_budget(options);
  IndexOptions index = index_of_classes(options, folder.features.label, folder.num_classes);
  const auto open = [&](const std::string& name) -> std::shared_ptr<const RecordShards> {
    const auto split = std::ranges::find(folder.splits, name, &TfdsSplit::name);
    if (split == folder.splits.end()) return nullptr;
    auto shards = std::make_shared<const RecordShards>(split->files, index, budget);
    for (std::size_t i = 0; i < split->files.size(); ++i) {
      if (shards->size_of(i) == split->shard_lengths[i]) continue;
      throw FileError(
          fmt::format("{}: {} records; dataset_info.json says {}; fetch both files again",
                      split->files[i].string(), shards->size_of(i), split->shard_lengths[i]));
    }
    require_intact(*shards, image.skip_bad_records > 0);
    return shards->size() == 0 ? nullptr : shards;
  };
  // Training samples come first in the cache: they are read in every epoch.
  const auto train = open("train");
  auto validation = open("validation");
  auto test = open("test");
  if (train == nullptr) {
    std::vector<std::string> names;
    for (const TfdsSplit& split : folder.splits) names.push_back(split.name);
    refuse_tfds(
        folder.path,
        fmt::format("it has no split train with records; {}; fetch the data set again",
                    names.empty() ? "it has no splits at all"
                                  : fmt::format("its splits are {}", fmt::join(names, ", "))));
  }
  note_splits(folder, test != nullptr ? "test" : validation != nullptr ? "validation" : "");
  if (test == nullptr) test = std::move(validation);
  std::int64_t num_classes = folder.num_classes;
  if (num_classes == 0) {
    for (const auto* shards : {train.get(), validation.get(), test.get()}) {
      if (shards != nullptr) num_classes = std::max(num_classes, 1 + shards->largest_value());
    }
  }
  std::error_code ignored;
  const auto cache = open_record_cache(
      "tfds", std::filesystem::canonical(folder.path, ignored).string(), image, index);
  std::int64_t num_slots = 0;
  const auto make = [&](const std::shared_ptr<const RecordShards>& shards) {
    const std::int64_t first_slot = num_slots;
    num_slots += shards->size();
    auto split = make_record_pictures(shards, folder.features.image, image,
                                      static_cast<int>(num_classes), cache, first_slot);
    require_readable(*split, *shards);
    require_pictures(
        *shards, folder.features.image, "tfds",
        fmt::format("--data 'tfrecord:{}/*-train.*' --raw-shape ", folder.path.string()));
    return split;
  };
  DataSplits splits{.name = "tfds", .class_names = folder.class_names};
  if (test == nullptr) {
    divide_in_ten(make(train), *train, splits);
  } else {
    splits.train = make(train);
    if (validation != nullptr) splits.validation = make(validation);
    splits.test = make(test);
  }
  describe_pictures(splits);
  return splits;
}

}  // namespace syncopate
