#include "worker/checkpoint/checkpoint_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <type_traits>
#include <utility>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/graph/graph_text.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// The version of the checkpoint format. A program reads checkpoints of its own version only.
constexpr std::string_view kFormatVersion = "1";

// Calls visit(key, field, is_required) for each entry of a checkpoint's metadata except the format
// version, the skipped samples, the rules and the loss scale. An entry that is not required is
// absent if its field is empty or 0.
template <typename Info, typename Visit>
void for_each_entry(Info& info, const Visit& visit) {
  visit("model", info.model, true);
  visit("optimizer", info.optimizer, true);
  visit("step", info.progress.at.step, true);
  visit("samples", info.progress.at.samples, true);
  visit("epoch", info.progress.at.position.epoch, true);
  visit("offset", info.progress.at.position.offset, true);
  visit("data", info.progress.data, true);
  visit("seed", info.progress.seed, true);
  visit("data_flag", info.progress.data_flag, true);
  visit("split", info.progress.split, false);
  visit("head", info.progress.head, false);
  visit("normalize", info.progress.normalize, false);
  visit("data_samples", info.progress.data_samples, true);
  visit("samples_per_update", info.progress.samples_per_update, true);
  visit("rounds", info.progress.rounds, false);
  visit("update_flags", info.progress.update_flags, true);
  visit("skip_bad_records", info.progress.skip_bad_records, false);
  visit("exif", info.progress.apply_exif, false);
  visit("image_feature", info.progress.image_feature, false);
  visit("label_feature", info.progress.label_feature, false);
  visit("raw_shape", info.progress.raw_shape, false);
  visit("class_names", info.progress.class_names, false);
  visit("table_columns", info.progress.table_columns, false);
  visit("network", info.network, true);
}

template <typename Number>
Number number_of(const SafetensorsReader& file, const fs::path& path, std::string_view key) {
  const std::string text = metadata_text(file, path, key);
  Number value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && last == text.data() + text.size() && value >= 0) return value;
  throw damaged_checkpoint(path, fmt::format("its {} is '{}'", key, text));
}

bool has(const SafetensorsReader& file, std::string_view key) {
  return file.metadata().contains(std::string(key));
}

// The skipped sample ranges of a checkpoint; the metadata lack them when there are none.
std::vector<ps::SampleRange> untrained_of(const SafetensorsReader& file, const fs::path& path) {
  const auto found = file.metadata().find("untrained");
  if (found == file.metadata().end()) return {};
  if (auto ranges = parse_sample_ranges(found->second)) return *std::move(ranges);
  throw damaged_checkpoint(
      path, fmt::format("its untrained samples are '{}'; expected [[epoch, begin, end], ...]",
                        found->second.substr(0, 100)));
}

// The loss scale of a checkpoint; the metadata lack it when losses are not scaled.
std::optional<LossScaleState> loss_scale_of(const SafetensorsReader& file, const fs::path& path) {
  if (!has(file, "loss_scale")) return std::nullopt;
  const LossScaleState state{number_of<float>(file, path, "loss_scale"),
                             number_of<std::int32_t>(file, path, "loss_scale_good_steps"),
                             number_of<std::int32_t>(file, path, "skipped_steps")};
  if (state.scale >= 1.0F && std::isfinite(state.scale)) return state;
  throw damaged_checkpoint(path, "its loss_scale is " + shortest_text(state.scale));
}

// The state of the rules that judge evaluations, as numbers with blanks between; empty: none.
std::vector<double> rules_of(const SafetensorsReader& file, const fs::path& path) {
  if (!has(file, "rules")) return {};
  const std::string text = metadata_text(file, path, "rules");
  std::vector<double> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    double number = 0.0;
    const auto [last, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (last != end && *last != ' ')) {
      throw damaged_checkpoint(path, "its rules are '" + text.substr(0, 100) + "'");
    }
    numbers.push_back(number);
    at = last == end ? end : last + 1;
  }
  return numbers;
}

std::string rules_text(const std::vector<double>& rules) {
  std::string text;
  for (const double number : rules) text += (text.empty() ? "" : " ") + shortest_text(number);
  return text;
}

}  // namespace

DamagedFileError damaged_checkpoint(const fs::path& path, std::string_view fault) {
  return DamagedFileError(fmt::format("checkpoint {} is damaged: {}", path.string(), fault));
}

std::string metadata_text(const SafetensorsReader& file, const fs::path& path,
                          std::string_view key) {
  const auto found = file.metadata().find(std::string(key));
  if (found != file.metadata().end()) return found->second;
  throw damaged_checkpoint(path, fmt::format("its metadata lack '{}'", key));
}

FileMetadata checkpoint_metadata(const CheckpointInfo& info) {
  FileMetadata metadata;
  for_each_entry(info, [&]<typename Value>(const char* key, const Value& value, bool is_required) {
    if (!is_required && value == Value{}) return;
    metadata[key] = fmt::format("{}", value);
  });
  metadata["network_hash"] = network_hash(info.network);
  metadata["format_version"] = kFormatVersion;
  if (const auto& untrained = info.progress.at.position.untrained; !untrained.empty()) {
    metadata["untrained"] = to_json(untrained);
  }
  if (const auto& rules = info.progress.at.rules; !rules.empty()) {
    metadata["rules"] = rules_text(rules);
  }
  if (info.loss_scale) {
    metadata["loss_scale"] = shortest_text(info.loss_scale->scale);
    metadata["loss_scale_good_steps"] = fmt::format("{}", info.loss_scale->good_steps);
    metadata["skipped_steps"] = fmt::format("{}", info.loss_scale->skipped_steps);
  }
  if (const std::int64_t pushes = info.progress.at.pushes; pushes > 0) {
    metadata["pushes"] = fmt::format("{}", pushes);
  }
  if (info.outer_rate) metadata["outer_rate"] = shortest_text(*info.outer_rate);
  return metadata;
}

// An unknown format version means another program or damage; the checksum tells which.
void check_format_version(const SafetensorsReader& file, const fs::path& path) {
  const auto version = file.metadata().find("format_version");
  if (version == file.metadata().end()) {
    if (file.metadata().contains("format")) {
      throw FileError(fmt::format(
          "{} holds weights, as syncopate export writes them, and is no checkpoint; give the "
          "checkpoint, or train with --init-from",
          path.string()));
    }
    const std::string fault = fmt::format("checkpoint {} has no format version", path.string());
    if (has(file, "checksum")) throw DamagedFileError(fault + ": its header is damaged");
    throw FileError(fault +
                    ": it was not written by this program; give a checkpoint of syncopate train");
  }
  if (version->second == kFormatVersion) return;
  const std::string found =
      fmt::format("checkpoint {} is of format version {}, this program reads version {}",
                  path.string(), version->second, kFormatVersion);
  try {
    file.verify_checksum();
  } catch (const DamagedFileError& error) {
    throw DamagedFileError(fmt::format("{}; and {}", found, error.fault()));
  }
  throw FileError(found + "; use the program that wrote it");
}

CheckpointInfo checkpoint_info(const SafetensorsReader& file, const fs::path& path) {
  CheckpointInfo info;
  info.path = path;
  for_each_entry(info, [&]<typename Value>(const char* key, Value& value, bool is_required) {
    if (!is_required && !has(file, key)) return;
    if constexpr (std::is_same_v<Value, std::string>) {
      value = metadata_text(file, path, key);
    } else {
      value = number_of<Value>(file, path, key);
    }
  });
  info.progress.at.position.untrained = untrained_of(file, path);
  info.progress.at.rules = rules_of(file, path);
  if (has(file, "pushes")) info.progress.at.pushes = number_of<std::int64_t>(file, path, "pushes");
  info.loss_scale = loss_scale_of(file, path);
  if (has(file, "outer_rate")) info.outer_rate = number_of<float>(file, path, "outer_rate");
  if (metadata_text(file, path, "network_hash") != network_hash(info.network)) {
    throw damaged_checkpoint(path, "its network does not have the recorded hash");
  }
  info.has_average = std::ranges::any_of(file.tensors(), [](const TensorEntry& entry) {
    return entry.name.starts_with(slot_name(std::string(kAverageSlot), ""));
  });
  return info;
}

}  // namespace syncopate
