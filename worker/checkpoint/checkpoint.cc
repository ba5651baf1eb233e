// The writer and the reader of checkpoints. They are one file, of over 450 lines, because they
// share the table of the metadata's entries and the names and the order of the tensors.
#include "worker/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>
#include <utility>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/base/random.h"
#include "models/graph/graph_text.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Versions of the checkpoint format. Version 2 lists skipped samples; a program that reads only
// version 1 would leave them out of training.
constexpr std::string_view kFormatVersion = "1";
constexpr std::string_view kSlotPrefix = "optimizer.";

// Returns the elements of tensor i, where `block` holds all tensors of the layout.
std::span<float> elements(const Tensor& block, const ArenaLayout& layout, std::size_t i) {
  return block.f32().subspan(static_cast<std::size_t>(layout.offset(i)),
                             static_cast<std::size_t>(layout.size(i)));
}

// Returns names and shapes of the network's tensors in a checkpoint: parameters, then state.
std::vector<TensorEntry> network_entries(const Graph& graph) {
  std::vector<TensorEntry> entries;
  for (const Parameter& parameter : graph.parameters) {
    entries.push_back({.name = parameter.name, .shape = parameter.file_shape});
  }
  for (const State& state : graph.state) {
    entries.push_back({.name = state.name, .shape = state.shape});
  }
  return entries;
}

std::vector<TensorEntry> slot_entries(const Graph& graph, const Snapshot& snapshot) {
  std::vector<TensorEntry> entries;
  for (const Snapshot::Slot& slot : snapshot.slots) {
    for (const Parameter& parameter : graph.parameters) {
      entries.push_back(
          {.name = slot_name(slot.name, parameter.name), .shape = parameter.file_shape});
    }
  }
  return entries;
}

DamagedFileError damaged_checkpoint(const fs::path& path, std::string_view fault) {
  return DamagedFileError(fmt::format("checkpoint {} is damaged: {}", path.string(), fault));
}

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

std::string text_of(const SafetensorsReader& file, const fs::path& path, std::string_view key) {
  const auto found = file.metadata().find(std::string(key));
  if (found != file.metadata().end()) return found->second;
  throw damaged_checkpoint(path, fmt::format("its metadata lack '{}'", key));
}

template <typename Number>
Number number_of(const SafetensorsReader& file, const fs::path& path, std::string_view key) {
  const std::string text = text_of(file, path, key);
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
  const std::string text = text_of(file, path, "rules");
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

FileMetadata metadata_of(const CheckpointInfo& info) {
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
  return metadata;
}

CheckpointInfo info_of(const SafetensorsReader& file, const fs::path& path) {
  CheckpointInfo info;
  info.path = path;
  for_each_entry(info, [&]<typename Value>(const char* key, Value& value, bool is_required) {
    if (!is_required && !has(file, key)) return;
    if constexpr (std::is_same_v<Value, std::string>) {
      value = text_of(file, path, key);
    } else {
      value = number_of<Value>(file, path, key);
    }
  });
  info.progress.at.position.untrained = untrained_of(file, path);
  info.progress.at.rules = rules_of(file, path);
  info.loss_scale = loss_scale_of(file, path);
  if (text_of(file, path, "network_hash") != network_hash(info.network)) {
    throw damaged_checkpoint(path, "its network does not have the recorded hash");
  }
  info.has_average = std::ranges::any_of(file.tensors(), [](const TensorEntry& entry) {
    return entry.name.starts_with(slot_name(std::string(kAverageSlot), ""));
  });
  return info;
}

// A checkpoint has tensors of f32 only.
void check_element_types(const SafetensorsReader& file, const fs::path& path) {
  for (const TensorEntry& entry : file.tensors()) {
    if (entry.dtype == kF32Name) continue;
    throw FileError(fmt::format(
        "checkpoint {} was not written by this program: tensor {} has the type {}, expected F32; "
        "give a checkpoint of syncopate train",
        path.string(), entry.name, entry.dtype));
  }
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

bool is_slot(const std::string& name) { return name.starts_with(kSlotPrefix); }

// Returns the first name that only one of a checkpoint's tensors and `wanted` have, with where it
// is; "" if there is none.
std::string first_other_name(const SafetensorsReader& file,
                             const std::vector<TensorEntry>& wanted) {
  for (const TensorEntry& entry : wanted) {
    if (file.find(entry.name) == nullptr) return entry.name + " is not in the file";
  }
  for (const TensorEntry& entry : file.tensors()) {
    const bool known = is_slot(entry.name) ||
                       std::any_of(wanted.begin(), wanted.end(), [&](const TensorEntry& want) {
                         return want.name == entry.name;
                       });
    if (!known) return entry.name + " is in the file only";
  }
  return "";
}

// Returns the first tensor of a checkpoint that has another shape than that in `wanted`; "" if
// there is none. All of `wanted` are in the file.
std::string first_other_shape(const SafetensorsReader& file,
                              const std::vector<TensorEntry>& wanted) {
  for (const TensorEntry& entry : wanted) {
    const TensorEntry& found = *file.find(entry.name);
    if (found.shape == entry.shape) continue;
    return fmt::format("{} is {} in the file, expected {}", entry.name, to_string(found.shape),
                       to_string(entry.shape));
  }
  return "";
}

// Throws UsageError unless the checkpoint's network does the same with its parameters: two network
// files may have the same name and parameters.
void check_operations(const SafetensorsReader& file, const fs::path& path, const Graph& graph) {
  const Graph recorded = recorded_network(info_of(file, path));
  const std::string difference = first_difference(recorded, graph);
  if (difference.empty()) return;
  throw UsageError(fmt::format(
      "checkpoint {} has another network {} than this run: its {}; give the --model it was trained "
      "with, or another checkpoint",
      path.string(), graph.name, difference));
}

void check_network(const SafetensorsReader& file, const fs::path& path, const Graph& graph) {
  const std::string model = text_of(file, path, "model");
  const std::vector<TensorEntry> wanted = network_entries(graph);
  const std::string other_name = first_other_name(file, wanted);
  const std::string difference = other_name.empty() ? first_other_shape(file, wanted) : other_name;
  if (model == graph.name && difference.empty()) return check_operations(file, path, graph);
  if (model == graph.name) {
    throw UsageError(
        other_name.empty()
            ? fmt::format("checkpoint {} has another network {}, or was trained on other data or "
                          "with another --image-size: {}; give {} and --data {}, with their flags",
                          path.string(), model, difference, model_flag(model),
                          text_of(file, path, "data_flag"))
            : fmt::format("checkpoint {} has another network {} than this run: {}; give the "
                          "--model and --head it was trained with, or another checkpoint",
                          path.string(), model, difference));
  }
  throw UsageError(fmt::format(
      "checkpoint {} has network {}, this run has network {}{}{}; give {}, or another checkpoint",
      path.string(), model, graph.name, difference.empty() ? "" : ": ", difference,
      model_flag(model)));
}

void check_optimizer(const SafetensorsReader& file, const fs::path& path, const Graph& graph,
                     const Snapshot& snapshot, const std::string& optimizer) {
  const std::string saved = text_of(file, path, "optimizer");
  if (saved != optimizer) {
    throw UsageError(fmt::format(
        "checkpoint {} is of optimizer {}, this run has optimizer {}: resume with --optimizer {}, "
        "or take the values only, with --init-from",
        path.string(), saved, optimizer, saved));
  }
  for (const TensorEntry& entry : slot_entries(graph, snapshot)) {
    const TensorEntry* found = file.find(entry.name);
    if (found == nullptr && entry.name.starts_with(slot_name(std::string(kAverageSlot), ""))) {
      throw UsageError(fmt::format(
          "checkpoint {} has no moving average of the weights; resume without --ema, or "
          "start a new run with --init-from",
          path.string()));
    }
    if (found == nullptr || found->shape != entry.shape) {
      throw FileError(fmt::format("checkpoint {} is damaged: {} {}", path.string(), entry.name,
                                  found == nullptr ? "is missing" : "has another shape"));
    }
  }
}

void append_parameters(SafetensorsWriter& file, const Graph& graph, const ArenaLayout& layout,
                       const Tensor& block) {
  std::vector<float> ordered;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const std::span<const float> memory = elements(block, layout, i);
    ordered.resize(memory.size());
    memory_to_file_order(graph.parameters[i], memory, ordered);
    file.append(ordered);
  }
}

void read_parameters(const SafetensorsReader& file, const Graph& graph, const ArenaLayout& layout,
                     const Tensor& block, const std::string& slot) {
  std::vector<float> ordered;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    const std::string name = slot.empty() ? parameter.name : slot_name(slot, parameter.name);
    const std::span<float> memory = elements(block, layout, i);
    ordered.resize(memory.size());
    file.read(*file.find(name), ordered);
    file_to_memory_order(parameter, ordered, memory);
  }
}

}  // namespace

std::string slot_name(const std::string& slot, const std::string& parameter) {
  return fmt::format("{}{}.{}", kSlotPrefix, slot, parameter);
}

void save_checkpoint(const fs::path& path, const Graph& graph, const Snapshot& snapshot,
                     const std::string& optimizer, const Progress& progress) {
  if (path.has_parent_path()) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
      throw FileError(fmt::format("create checkpoint folder {}: {}", path.parent_path().string(),
                                  error.message()));
    }
  }
  std::vector<TensorEntry> entries = network_entries(graph);
  for (TensorEntry& entry : slot_entries(graph, snapshot)) entries.push_back(std::move(entry));

  const CheckpointInfo info{.path = path,
                            .progress = progress,
                            .model = graph.name,
                            .optimizer = optimizer,
                            .network = to_text(graph),
                            .loss_scale = snapshot.loss_scale};
  SafetensorsWriter file(path, metadata_of(info), std::move(entries));
  const ArenaLayout parameters = graph.parameter_layout();
  const ArenaLayout state = graph.state_layout();
  append_parameters(file, graph, parameters, snapshot.values);
  for (std::size_t i = 0; i < graph.state.size(); ++i) {
    file.append(elements(snapshot.state, state, i));
  }
  for (const Snapshot::Slot& slot : snapshot.slots) {
    append_parameters(file, graph, parameters, slot.values);
  }
  file.commit();
}

std::string model_flag(std::string_view network) {
  const bool is_known =
      std::ranges::find(networks(), network, &NetworkRow::name) != networks().end();
  return is_known ? fmt::format("--model {}", network)
                  : fmt::format("--model file:NET.json with the network {}", network);
}

CheckpointInfo read_checkpoint_info(const fs::path& file_or_folder) {
  const fs::path path = file_or_newest_in(file_or_folder);
  const SafetensorsReader file(path);
  check_element_types(file, path);
  check_format_version(file, path);
  file.verify_checksum();
  return info_of(file, path);
}

Graph recorded_network(const CheckpointInfo& info) {
  try {
    return parse_graph(info.network);
  } catch (const Error& error) {
    throw FileError(fmt::format("checkpoint {}: {}; use the program that wrote it",
                                info.path.string(), error.what()));
  }
}

CheckpointInfo load_checkpoint(const fs::path& path, const Graph& graph, const Snapshot& snapshot,
                               const std::string& optimizer, bool want_slots) {
  const SafetensorsReader file(path);
  // The whole checkpoint is checked before the first value in memory is touched.
  check_element_types(file, path);
  check_format_version(file, path);
  file.verify_checksum();
  check_network(file, path, graph);
  if (want_slots) check_optimizer(file, path, graph, snapshot, optimizer);
  CheckpointInfo info = info_of(file, path);
  const ArenaLayout parameters = graph.parameter_layout();
  const ArenaLayout state = graph.state_layout();
  read_parameters(file, graph, parameters, snapshot.values, "");
  for (std::size_t i = 0; i < graph.state.size(); ++i) {
    file.read(*file.find(graph.state[i].name), elements(snapshot.state, state, i));
  }
  if (!want_slots) return info;
  for (const Snapshot::Slot& slot : snapshot.slots) {
    read_parameters(file, graph, parameters, slot.values, slot.name);
  }
  return info;
}

void load_average(const fs::path& path, const Graph& graph, const Tensor& values) {
  const SafetensorsReader file(path);
  check_format_version(file, path);
  file.verify_checksum();
  for (const Parameter& parameter : graph.parameters) {
    if (file.find(slot_name(std::string(kAverageSlot), parameter.name)) != nullptr) continue;
    throw damaged_checkpoint(path, "it lacks the moving average of " + parameter.name);
  }
  read_parameters(file, graph, graph.parameter_layout(), values, std::string(kAverageSlot));
}

std::string weights_hash(const Tensor& values) {
  const std::span<const std::byte> bytes = values.bytes();
  return fmt::format("{:016x}",
                     hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

}  // namespace syncopate
