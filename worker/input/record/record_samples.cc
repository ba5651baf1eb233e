#include "worker/input/record/record_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/resource_limits.h"
#include "worker/input/array/class_labels.h"
#include "worker/input/image/image_header.h"
#include "worker/input/pictures/picture_dataset.h"
#include "worker/input/record/shard_files.h"

namespace syncopate {
namespace {

// Returns a shape that pixels of this size may have, "HxWxC:TYPE", with an example if square
// pictures of u8 have this size.
std::string likely_shape(std::size_t bytes) {
  for (const std::size_t channels : {1, 3, 4}) {
    const auto side = static_cast<std::size_t>(
        std::lround(std::sqrt(static_cast<double>(bytes) / static_cast<double>(channels))));
    if (side > 1 && side * side * channels == bytes) {
      return fmt::format("HxWxC:TYPE, such as {0}x{0}x{1}:u8", side, channels);
    }
  }
  return "HxWxC:TYPE, with TYPE u8, u16 or f32";
}

}  // namespace

SampleFeatures features_of(const RecordFields& fields, std::string_view image,
                           std::string_view label) {
  return {.image = {"--image-feature", fields.image.empty() ? std::string(image) : fields.image},
          .label = {"--label-feature", fields.label.empty() ? std::string(label) : fields.label}};
}

Example parse_example(std::span<const std::byte> record, const std::string& what) {
  if (auto example = Example::parse(record)) return *std::move(example);
  throw FileError(
      fmt::format("{}: its {} bytes are no serialized tf.train.Example", what, record.size()));
}

Feature require_feature(const Example& example, const FeatureName& feature, FeatureKind kind,
                        const std::string& what) {
  const std::optional<Feature> found = example.find(feature.name);
  if (!found) {
    throw UsageError(fmt::format("{} {}: there is no such feature in {}, which has {}",
                                 feature.flag, feature.name, what, example.describe()));
  }
  if (found->kind == kind && found->count > 0) return *found;
  if (found->kind == kind || found->kind == FeatureKind::kEmpty) {
    throw FileError(fmt::format("{}: its feature {} has no value", what, feature.name));
  }
  throw UsageError(fmt::format("{} {}: expected a feature of {}; {} has {}", feature.flag,
                               feature.name, name(kind), what, example.describe()));
}

Feature require_one_value(const Example& example, const FeatureName& feature, FeatureKind kind,
                          std::string_view noun, const std::string& what) {
  const Feature found = require_feature(example, feature, kind, what);
  if (found.count == 1) return found;
  throw FileError(fmt::format(
      "{}: its feature {} has {} values; expected one {} in a record; write a record for each, or "
      "name another feature by {}",
      what, feature.name, found.count, noun, feature.flag));
}

UnpackedBudget unpacked_budget(const DataOptions& options, const std::filesystem::path& root) {
  return {available_memory(root) / 2 / std::max(1, options.local_tasks)};
}

IndexOptions index_options(const DataOptions& options, std::string value_key, RecordValue value) {
  return {.cache_dir = options.cache_dir,
          .value_key = std::move(value_key),
          .value = std::move(value),
          .on_progress = options.on_progress};
}

IndexOptions index_of_classes(const DataOptions& options, const FeatureName& label,
                              std::int64_t num_classes) {
  const std::int64_t end = num_classes > 0 ? num_classes : std::int64_t{kLargestLabel} + 1;
  const auto value = [label, end](const RecordFile& file, const RecordPlace& place,
                                  std::span<const std::byte> bytes) {
    const std::optional<Example> example = Example::parse(bytes);
    if (!example) return kDamagedRecord;
    const std::string what = file.describe(place);
    const Feature feature = require_feature(*example, label, FeatureKind::kIntegers, what);
    const std::int64_t found = feature.integers.front();
    if (feature.count == 1 && found >= 0 && found < end) return found;
    throw FileError(fmt::format(
        "{}: its feature {} is {}{}; expected one class from 0 to {}", what, label.name, found,
        feature.count == 1 ? "" : fmt::format(" and {} more", feature.count - 1), end - 1));
  };
  return index_options(options, fmt::format("class {} below {}", label.name, end), value);
}

void require_intact(const RecordShards& shards, bool may_be_damaged) {
  const bool all_are_damaged = shards.largest_value() == kDamagedRecord;
  if (may_be_damaged && !all_are_damaged) return;
  for (std::int64_t i = 0; i < shards.size(); ++i) {
    if (shards.value(i) != kDamagedRecord) continue;
    std::string reason = shards.describe(i) + ": it is damaged";
    try {
      (void)parse_example(shards.read(i), shards.describe(i));
    } catch (const FileError& error) {
      reason = error.what();
    }
    if (!all_are_damaged || shards.size() == 1) throw FileError(reason);
    throw FileError(
        fmt::format("all {} records are damaged; the first: {}", shards.size(), reason));
  }
}

void warn_about_empty_files(const RecordShards& shards) {
  std::size_t num_empty = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < shards.num_files(); ++i) {
    if (shards.size_of(i) > 0) continue;
    if (num_empty++ == 0) first = i;
  }
  if (num_empty == 0) return;
  log(LogLevel::kWarning,
      fmt::format("{} of {} files {} no records, {}{}; fetch them again if they should have some",
                  num_empty, shards.num_files(), num_empty == 1 ? "has" : "have",
                  num_empty == 1 ? "" : "first ", shards.file(first).path()));
}

void require_pictures(const RecordShards& shards, const FeatureName& image,
                      std::string_view data_name, std::string_view flags) {
  // One record may be damaged in a way that its checksum does not show.
  constexpr int kMostLookedAt = 4;
  std::optional<std::string> first;
  int num_looked_at = 0;
  for (std::int64_t i = 0; i < shards.size() && num_looked_at < kMostLookedAt; ++i) {
    if (shards.value(i) == kDamagedRecord) continue;
    ++num_looked_at;
    const std::string what = shards.describe(i);
    const Example example = parse_example(shards.read(i), what);
    const std::optional<Feature> found = example.find(image.name);
    const bool is_floats = found && found->kind == FeatureKind::kFloats && found->count > 0;
    const bool is_bytes = found && found->kind == FeatureKind::kBytes && found->count > 0;
    if (!is_floats && (!is_bytes || known_file_type(found->bytes))) return;
    if (first) continue;
    first = is_floats ? fmt::format(
                            "the feature {} of {} has {} floats and no JPEG or PNG picture; for "
                            "values give {}{}:f32",
                            image.name, what, found->count, flags, found->count)
                      : fmt::format(
                            "the feature {} of {} has {} bytes that are no JPEG or PNG picture; "
                            "for raw pixels give {}{}",
                            image.name, what, found->bytes.size(), flags,
                            likely_shape(found->bytes.size()));
  }
  if (first) throw UsageError(fmt::format("--data {}: {}", data_name, *first));
}

std::string class_names_file(std::string label) {
  // The name of a nested feature has '-' where the feature has '/'.
  std::ranges::replace(label, '/', '-');
  return label + ".labels.txt";
}

std::vector<std::string> read_class_names(const std::filesystem::path& folder,
                                          const std::string& label) {
  std::vector<std::string> names;
  const std::filesystem::path path = folder / class_names_file(label);
  if (!is_there(path)) return names;
  std::ifstream file(path);
  if (!file) {
    throw FileError(describe_errno("open", path.string(), errno) + "; let this user read the file");
  }
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

void require_readable(const Dataset& dataset, const RecordShards& shards) {
  std::int64_t index = 0;
  while (index < shards.size() && shards.value(index) == kDamagedRecord) ++index;
  if (index == shards.size() || dataset.stored_picture(index)) return;
  std::vector<std::byte> input(dataset.spec().inputs[0].size_bytes());
  std::vector<std::byte> target(dataset.spec().target.size_bytes());
  const std::array inputs = {std::span<std::byte>(input)};
  dataset.read(index, {}, {inputs, target});
}

void divide_in_ten(std::shared_ptr<const Dataset> whole, const RecordShards& shards,
                   DataSplits& splits) {
  constexpr std::uint32_t kOneIn = 10;
  std::array<std::vector<std::uint32_t>, 2> parts;
  for (std::int64_t i = 0; i < shards.size(); ++i) {
    parts[shards.hashed(i, kOneIn) == 0 ? 1 : 0].push_back(static_cast<std::uint32_t>(i));
  }
  if (parts[0].empty() || parts[1].empty()) {
    throw UsageError(fmt::format(
        "--data {}: {} records are too few to make one in ten a test sample; give test samples in "
        "files of their own",
        splits.name, shards.size()));
  }
  splits.train = subset_of(whole, std::move(parts[0]));
  splits.test = subset_of(std::move(whole), std::move(parts[1]));
}

std::shared_ptr<SampleCache> open_record_cache(std::string_view data_name,
                                               std::string_view contents, const ImageOptions& image,
                                               const IndexOptions& index) {
  if (!index.can_keep && index.cache_dir == image.cache_dir) return nullptr;
  return open_picture_cache(data_name, contents, image);
}

void warn_about_repeated_files(const RecordShards& shards) {
  std::map<FileId, std::string> names;
  for (std::size_t i = 0; i < shards.num_files(); ++i) {
    const RecordFile& file = shards.file(i);
    const auto [first, is_new] = names.emplace(file.id(), file.path());
    if (is_new) continue;
    log(LogLevel::kWarning,
        fmt::format("{} and {} are the same file, and its samples count twice; give a pattern "
                    "without one of the two",
                    first->second, file.path()));
    return;
  }
}

std::vector<std::filesystem::path> shared_files(const RecordShards& left,
                                                const RecordShards& right) {
  std::set<FileId> ids;
  for (std::size_t i = 0; i < right.num_files(); ++i) ids.insert(right.file(i).id());
  std::vector<std::filesystem::path> shared;
  for (std::size_t i = 0; i < left.num_files(); ++i) {
    if (ids.contains(left.file(i).id())) shared.emplace_back(left.file(i).path());
  }
  return shared;
}

}  // namespace syncopate
