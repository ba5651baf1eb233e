#include "worker/checkpoint/export_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>
#include <vector>

#include "models/base/errors.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {

ExportedWeights export_weights(const CheckpointInfo& info, const Graph& graph,
                               const std::filesystem::path& out) {
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
  const SafetensorsReader file(info.path);
  file.verify_checksum();
  std::vector<TensorEntry> entries;
  std::vector<std::string> names_in_checkpoint;
  ExportedWeights exported;
  for (const Parameter& parameter : graph.parameters) {
    entries.push_back({.name = parameter.name, .shape = parameter.file_shape});
    names_in_checkpoint.push_back(
        info.has_average ? slot_name(std::string(kAverageSlot), parameter.name) : parameter.name);
    exported.parameters += num_elements(parameter.file_shape);
  }
  for (const State& state : graph.state) {
    entries.push_back({.name = state.name, .shape = state.shape});
    names_in_checkpoint.push_back(state.name);
  }
  const auto& input = std::get<InputOp>(graph.first_input().operation);
  exported.normalization =
      fmt::format("(x / {} - mean) / stddev of samples x with mean [{}] and stddev [{}]",
                  input.unit(), fmt::join(input.mean, ", "), fmt::join(input.stddev, ", "));
  SafetensorsWriter writer(out, {{"format", "pt"}, {"input", exported.normalization}}, entries);
  std::vector<float> values;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry* found = file.find(names_in_checkpoint[i]);
    if (found == nullptr || found->shape != entries[i].shape) {
      throw FileError(fmt::format("checkpoint {} is damaged: {} is missing or has another shape",
                                  info.path.string(), names_in_checkpoint[i]));
    }
    values.resize(static_cast<std::size_t>(num_elements(found->shape)));
    file.read(*found, values);
    writer.append(values);
  }
  writer.commit();
  exported.tensors = static_cast<std::int64_t>(entries.size());
  return exported;
}

}  // namespace syncopate
