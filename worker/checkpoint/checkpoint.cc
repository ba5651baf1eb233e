#include "worker/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/base/random.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/sample_ranges_json.h"

namespace syncopate {

namespace {

namespace fs = std::filesystem;

// Format versions. The version is raised when an older program could misread a file: a program that
// does not know of skipped samples would leave them out.
constexpr std::string_view kFormatVersion = "1";
constexpr std::string_view kFormatVersionWithGaps = "2";
constexpr std::string_view kSlotPrefix = "optimizer.";

std::string slot_name(const std::string& slot, const std::string& parameter) {
  return std::string(kSlotPrefix) + slot + "." + parameter;
}

// The elements of entry i in a block with this layout.
std::span<float> elements(const Tensor& block, const ArenaLayout& layout, std::size_t i) {
  return block.f32().subspan(static_cast<std::size_t>(layout.offset(i)),
                             static_cast<std::size_t>(layout.size(i)));
}

// The tensors of the network: parameters, then state.
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

std::string text_of(const SafetensorsReader& file, const fs::path& path, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found != file.metadata().end()) return found->second;
  throw DamagedFileError("checkpoint " + path.string() + " is damaged: its metadata lack '" + key +
                         "'");
}

template <typename Number>
Number number_of(const SafetensorsReader& file, const fs::path& path, const std::string& key) {
  const std::string text = text_of(file, path, key);
  Number value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && last == text.data() + text.size() && value >= 0) return value;
  throw DamagedFileError("checkpoint " + path.string() + " is damaged: its " + key + " is '" +
                         text + "'");
}

bool has(const SafetensorsReader& file, const std::string& key) {
  return file.metadata().contains(key);
}

// The skipped sample ranges; the metadata lack them when there are none.
std::vector<ps::SampleRange> untrained_of(const SafetensorsReader& file, const fs::path& path) {
  const auto found = file.metadata().find("untrained");
  if (found == file.metadata().end()) return {};
  if (auto ranges = parse_sample_ranges(found->second)) return *std::move(ranges);
  throw DamagedFileError("checkpoint " + path.string() +
                         " is damaged: its untrained samples are '" + found->second.substr(0, 100) +
                         "'; expected [[epoch, begin, end], ...]");
}

// The loss scale; the metadata lack it when losses are not scaled.
std::optional<LossScaleState> loss_scale_of(const SafetensorsReader& file, const fs::path& path) {
  if (!has(file, "loss_scale")) return std::nullopt;
  const LossScaleState state{number_of<float>(file, path, "loss_scale"),
                             number_of<std::int32_t>(file, path, "loss_scale_good_steps"),
                             number_of<std::int32_t>(file, path, "skipped_steps")};
  if (state.scale >= 1.0F && std::isfinite(state.scale)) return state;
  throw DamagedFileError("checkpoint " + path.string() + " is damaged: its loss_scale is " +
                         shortest_text(state.scale));
}

// An unknown version may come from a newer program or from damaged bytes; the checksum tells which.
void check_format_version(const SafetensorsReader& file, const fs::path& path) {
  const auto version = file.metadata().find("format_version");
  if (version == file.metadata().end()) {
    const std::string fault = "checkpoint " + path.string() + " has no format version";
    if (has(file, "checksum")) throw DamagedFileError(fault + ": its header is damaged");
    throw FileError(
        fault + ": it was not written by this program; give a checkpoint of syncopate " + "train");
  }
  if (version->second == kFormatVersion || version->second == kFormatVersionWithGaps) return;
  const std::string found = "checkpoint " + path.string() + " is of format version " +
                            version->second + ", this program reads version " +
                            std::string(kFormatVersion) + " and " +
                            std::string(kFormatVersionWithGaps);
  try {
    file.verify_checksum();
  } catch (const DamagedFileError& error) {
    throw DamagedFileError(found + "; and " + error.fault());
  }
  throw FileError(found + "; use the program that wrote it");
}

bool is_slot(const std::string& name) { return name.starts_with(kSlotPrefix); }

// The first difference between the file and `wanted`; "" when there is none.
std::string first_difference(const SafetensorsReader& file,
                             const std::vector<TensorEntry>& wanted) {
  for (const TensorEntry& entry : wanted) {
    const TensorEntry* found = file.find(entry.name);
    if (found == nullptr) return entry.name + " is not in the file";
    if (found->shape != entry.shape) {
      return entry.name + " is " + to_string(found->shape) + " in the file, expected " +
             to_string(entry.shape);
    }
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

void check_network(const SafetensorsReader& file, const fs::path& path, const Graph& graph) {
  const std::string model = text_of(file, path, "model");
  const std::string difference = first_difference(file, network_entries(graph));
  if (model == graph.name && difference.empty()) return;
  if (model == graph.name) {
    throw UsageError(fmt::format(
        "checkpoint {} has network {} for other data: {}; give the --data it was trained on, {}",
        path.string(), model, difference, text_of(file, path, "data")));
  }
  throw UsageError(fmt::format(
      "checkpoint {} has network {}, this run has network {}{}{}; give --model {}, or another "
      "checkpoint",
      path.string(), model, graph.name, difference.empty() ? "" : ": ", difference, model));
}

void check_optimizer(const SafetensorsReader& file, const fs::path& path, const Graph& graph,
                     const Snapshot& snapshot, const std::string& optimizer) {
  const std::string saved = text_of(file, path, "optimizer");
  if (saved != optimizer) {
    throw UsageError("checkpoint " + path.string() + " is of optimizer " + saved +
                     ", this run has optimizer " + optimizer + ": resume with --optimizer " +
                     saved + ", or take the values only");
  }
  for (const TensorEntry& entry : slot_entries(graph, snapshot)) {
    const TensorEntry* found = file.find(entry.name);
    if (found == nullptr || found->shape != entry.shape) {
      throw FileError("checkpoint " + path.string() + " is damaged: " + entry.name +
                      (found == nullptr ? " is missing" : " has another shape"));
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

void save_checkpoint(const fs::path& path, const Graph& graph, const Snapshot& snapshot,
                     const std::string& optimizer, const Progress& progress) {
  if (path.has_parent_path()) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) {
      throw FileError("create checkpoint folder " + path.parent_path().string() + ": " +
                      error.message());
    }
  }
  FileMetadata metadata = {{"format_version", std::string(kFormatVersion)},
                           {"model", graph.name},
                           {"optimizer", optimizer},
                           {"step", std::to_string(progress.at.step)},
                           {"samples", std::to_string(progress.at.samples)},
                           {"epoch", std::to_string(progress.at.position.epoch)},
                           {"offset", std::to_string(progress.at.position.offset)},
                           {"data", progress.data},
                           {"seed", std::to_string(progress.seed)}};
  if (!progress.data_samples.empty()) metadata["data_samples"] = progress.data_samples;
  if (progress.samples_per_update > 0) {
    metadata["samples_per_update"] = std::to_string(progress.samples_per_update);
  }
  if (progress.learning_rate > 0.0) {
    metadata["learning_rate"] = shortest_text(progress.learning_rate);
  }
  if (!progress.at.position.untrained.empty()) {
    metadata["format_version"] = kFormatVersionWithGaps;
    metadata["untrained"] = to_json(progress.at.position.untrained);
  }
  if (snapshot.loss_scale) {
    metadata["loss_scale"] = shortest_text(snapshot.loss_scale->scale);
    metadata["loss_scale_good_steps"] = std::to_string(snapshot.loss_scale->good_steps);
    metadata["skipped_steps"] = std::to_string(snapshot.loss_scale->skipped_steps);
  }
  std::vector<TensorEntry> entries = network_entries(graph);
  for (TensorEntry& entry : slot_entries(graph, snapshot)) entries.push_back(std::move(entry));

  SafetensorsWriter file(path, std::move(metadata), std::move(entries));
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

CheckpointInfo load_checkpoint(const fs::path& path, const Graph& graph, const Snapshot& snapshot,
                               const std::string& optimizer, bool want_slots) {
  const SafetensorsReader file(path);
  // Everything is checked before the first value is touched.
  check_format_version(file, path);
  file.verify_checksum();
  check_network(file, path, graph);
  if (want_slots) check_optimizer(file, path, graph, snapshot, optimizer);
  CheckpointInfo info;
  info.path = path;
  info.model = text_of(file, path, "model");
  info.optimizer = text_of(file, path, "optimizer");
  info.progress.at.step = number_of<std::int64_t>(file, path, "step");
  info.progress.at.samples = number_of<std::int64_t>(file, path, "samples");
  info.progress.at.position.epoch = number_of<std::int64_t>(file, path, "epoch");
  info.progress.at.position.offset = number_of<std::int64_t>(file, path, "offset");
  info.progress.at.position.untrained = untrained_of(file, path);
  info.progress.data = text_of(file, path, "data");
  info.progress.seed = number_of<std::uint64_t>(file, path, "seed");
  if (has(file, "data_samples")) info.progress.data_samples = text_of(file, path, "data_samples");
  if (has(file, "samples_per_update")) {
    info.progress.samples_per_update = number_of<std::int64_t>(file, path, "samples_per_update");
  }
  if (has(file, "learning_rate")) {
    info.progress.learning_rate = number_of<double>(file, path, "learning_rate");
  }
  info.loss_scale = loss_scale_of(file, path);

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

std::string weights_hash(const Tensor& values) {
  const std::span<const std::byte> bytes = values.bytes();
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(
                    hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
  return text.data();
}

}  // namespace syncopate
