// The writer and the reader of checkpoints, which share the names and the order of the tensors.
#include "worker/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/graph/graph_text.h"
#include "models/optim/outer_rule.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/checkpoint_metadata.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

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

std::vector<TensorEntry> entries_of(const Graph& graph, const std::string& slot) {
  std::vector<TensorEntry> entries;
  for (const Parameter& parameter : graph.parameters) {
    entries.push_back({.name = slot_name(slot, parameter.name), .shape = parameter.file_shape});
  }
  return entries;
}

bool has_slot(const SafetensorsReader& file, const Graph& graph, const std::string& slot) {
  return std::ranges::any_of(graph.parameters, [&](const Parameter& parameter) {
    return file.find(slot_name(slot, parameter.name)) != nullptr;
  });
}

// Returns how many workers' sets of a slot a checkpoint has; 0 if it has a common set or none.
std::size_t sets_of(const SafetensorsReader& file, const Graph& graph, const std::string& slot) {
  std::size_t sets = 0;
  while (has_slot(file, graph, worker_slot(slot, sets))) ++sets;
  return sets;
}

// Returns the slots of a checkpoint from which the slot `wanted` of this run is computed, as their
// mean. In most cases there is one. A common set is the mean of the sets of all workers. Empty: the
// slot starts as zeros, as only the outer momentum may.
std::vector<std::string> sources_of(const SafetensorsReader& file, const Graph& graph,
                                    const std::string& wanted) {
  if (has_slot(file, graph, wanted)) return {wanted};
  if (is_outer_slot(wanted)) return {};
  const std::string common = common_slot(wanted);
  const std::size_t sets = sets_of(file, graph, common);
  if (sets == 0) return {common};
  if (wanted != common) return {worker_slot(common, worker_of_slot(wanted) % sets)};
  std::vector<std::string> all;
  for (std::size_t worker = 0; worker < sets; ++worker) all.push_back(worker_slot(common, worker));
  return all;
}

// Returns notes about slots that do not simply continue.
std::vector<std::string> describe_slots(const SafetensorsReader& file, const Graph& graph,
                                        std::span<const Snapshot::Slot> wanted) {
  std::vector<std::string> notes;
  const std::string outer(kOuterMomentumSlot);
  const auto is_outer = [](const Snapshot::Slot& slot) { return is_outer_slot(slot.name); };
  const bool wants_outer = std::ranges::any_of(wanted, is_outer);
  if (has_slot(file, graph, outer) != wants_outer) {
    notes.emplace_back(wants_outer ? "the outer momentum starts at zero: the checkpoint has none"
                                   : "the outer momentum of the checkpoint is not used");
  }
  const auto inner = std::ranges::find_if_not(wanted, is_outer);
  if (inner == wanted.end()) return notes;
  const std::string common = common_slot(inner->name);
  const auto is_set = [&](const Snapshot::Slot& slot) {
    return slot.name != common && common_slot(slot.name) == common;
  };
  const auto now = static_cast<std::size_t>(std::ranges::count_if(wanted, is_set));
  const std::size_t before = sets_of(file, graph, common);
  if (before == now) return notes;
  if (now == 0) {
    notes.push_back(fmt::format(
        "the optimizer's state is the mean of the states of the {} workers in the checkpoint",
        before));
  } else if (before == 0) {
    notes.emplace_back("every worker continues with the optimizer's state in the checkpoint");
  } else {
    notes.push_back(fmt::format(
        "the checkpoint has the optimizer's state of {} workers: worker r of {} continues with the "
        "state of worker r mod {}",
        before, now, before));
  }
  return notes;
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

bool is_slot(const std::string& name) { return name.starts_with(kSlotPrefix); }
bool is_inner_slot(const TensorEntry& entry) {
  return is_slot(entry.name) &&
         !entry.name.starts_with(slot_name(std::string(kOuterMomentumSlot), "")) &&
         !entry.name.starts_with(slot_name(std::string(kOuterSumSlot), ""));
}

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
  const Graph recorded = recorded_network(checkpoint_info(file, path));
  const std::string difference = first_difference(recorded, graph);
  if (difference.empty()) return;
  throw UsageError(fmt::format(
      "checkpoint {} has another network {} than this run: its {}; give the --model it was trained "
      "with, or another checkpoint",
      path.string(), graph.name, difference));
}

void check_network(const SafetensorsReader& file, const fs::path& path, const Graph& graph) {
  const std::string model = metadata_text(file, path, "model");
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
                          metadata_text(file, path, "data_flag"))
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
  const std::string saved = metadata_text(file, path, "optimizer");
  if (saved != optimizer) {
    throw UsageError(fmt::format(
        "checkpoint {} is of optimizer {}, this run has optimizer {}: resume with --optimizer {}, "
        "or take the values only, with --init-from",
        path.string(), saved, optimizer, saved));
  }
  std::vector<TensorEntry> entries;
  for (const Snapshot::Slot& slot : snapshot.slots) {
    for (const std::string& source : sources_of(file, graph, slot.name)) {
      std::ranges::move(entries_of(graph, source), std::back_inserter(entries));
    }
  }
  for (const TensorEntry& entry : entries) {
    const TensorEntry* found = file.find(entry.name);
    if (found == nullptr && entry.name.starts_with(slot_name(std::string(kAverageSlot), ""))) {
      throw UsageError(fmt::format(
          "checkpoint {} has no moving average of the weights; resume without --ema, or "
          "start a new run with --init-from",
          path.string()));
    }
    if (found == nullptr && std::ranges::none_of(file.tensors(), &is_inner_slot)) {
      throw UsageError(fmt::format(
          "checkpoint {} has no state of the optimizer, which its workers kept to themselves; take "
          "the values only, with --init-from, or resume with the strategy of the checkpoint",
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

// Reads the mean of the slots `sources`; zeros if there are none.
void read_slot(const SafetensorsReader& file, const Graph& graph, const ArenaLayout& layout,
               const Tensor& block, const std::vector<std::string>& sources) {
  if (sources.size() == 1) return read_parameters(file, graph, layout, block, sources.front());
  const std::span<float> mean = block.f32();
  std::ranges::fill(mean, 0.0F);
  const Tensor one = make_host_tensor(block.shape(), DType::kF32);
  const float weight = 1.0F / static_cast<float>(sources.size());
  for (const std::string& source : sources) {
    read_parameters(file, graph, layout, one, source);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += weight * one.f32()[i];
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
  for (const Snapshot::Slot& slot : snapshot.slots) {
    std::ranges::move(entries_of(graph, slot.name), std::back_inserter(entries));
  }

  const CheckpointInfo info{.path = path,
                            .progress = progress,
                            .model = graph.name,
                            .optimizer = optimizer,
                            .network = to_text(graph),
                            .loss_scale = snapshot.loss_scale,
                            .outer_rate = snapshot.outer_rate};
  SafetensorsWriter file(path, checkpoint_metadata(info), std::move(entries));
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
  return checkpoint_info(file, path);
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
  CheckpointInfo info = checkpoint_info(file, path);
  const ArenaLayout parameters = graph.parameter_layout();
  const ArenaLayout state = graph.state_layout();
  read_parameters(file, graph, parameters, snapshot.values, "");
  for (std::size_t i = 0; i < graph.state.size(); ++i) {
    file.read(*file.find(graph.state[i].name), elements(snapshot.state, state, i));
  }
  if (!want_slots) return info;
  for (const Snapshot::Slot& slot : snapshot.slots) {
    read_slot(file, graph, parameters, slot.values, sources_of(file, graph, slot.name));
  }
  info.notes = describe_slots(file, graph, snapshot.slots);
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
