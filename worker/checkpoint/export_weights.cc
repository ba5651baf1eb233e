#include "worker/checkpoint/export_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "models/base/errors.h"

namespace syncopate {

TrainedTensors::TrainedTensors(const CheckpointInfo& info, const Graph& graph) : file_(info.path) {
  file_.verify_checksum();
  std::vector<std::string> names_in_checkpoint;
  for (const Parameter& parameter : graph.parameters) {
    entries_.push_back({.name = parameter.name, .shape = parameter.file_shape});
    names_in_checkpoint.push_back(
        info.has_average ? slot_name(std::string(kAverageSlot), parameter.name) : parameter.name);
  }
  for (const State& state : graph.state) {
    entries_.push_back({.name = state.name, .shape = state.shape});
    names_in_checkpoint.push_back(state.name);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const TensorEntry* found = file_.find(names_in_checkpoint[i]);
    if (found == nullptr || found->shape != entries_[i].shape) {
      throw FileError(fmt::format("checkpoint {} is damaged: {} is missing or has another shape",
                                  info.path.string(), names_in_checkpoint[i]));
    }
    found_.push_back(found);
  }
}

std::vector<float> TrainedTensors::read(std::size_t i) const {
  std::vector<float> values(static_cast<std::size_t>(num_elements(entries_.at(i).shape)));
  file_.read(*found_[i], values);
  return values;
}

std::string describe_normalization(const Graph& graph) {
  const auto& input = std::get<InputOp>(graph.first_input().operation);
  return fmt::format("(x / {} - mean) / stddev of samples x with mean [{}] and stddev [{}]",
                     input.unit(), fmt::join(input.mean, ", "), fmt::join(input.stddev, ", "));
}

void require_export_file(const CheckpointInfo& info, const std::filesystem::path& out) {
  std::error_code ignored;
  if (std::filesystem::equivalent(info.path, out, ignored)) {
    throw UsageError(fmt::format("{} is the checkpoint itself; give another file", out.string()));
  }
  if (std::filesystem::is_directory(out, ignored)) {
    throw UsageError(
        fmt::format("{0} is a folder; give a file, such as {0}/weights.safetensors", out.string()));
  }
  const std::filesystem::path folder = out.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    throw UsageError(fmt::format("{}: there is no folder {}; make it, or give another file",
                                 out.string(), folder.string()));
  }
}

void export_weights(const TrainedTensors& tensors, const Graph& graph,
                    const std::filesystem::path& out) {
  SafetensorsWriter writer(out, {{"format", "pt"}, {"input", describe_normalization(graph)}},
                           tensors.entries());
  for (std::size_t i = 0; i < tensors.entries().size(); ++i) writer.append(tensors.read(i));
  writer.commit();
}

}  // namespace syncopate
