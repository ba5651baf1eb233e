// `syncopate convert model.onnx net.json net.safetensors`: writes the network of an ONNX file as a
// network file, and its weights as --init-from reads them.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "deploy/commands/commands.h"
#include "deploy/onnx/onnx_network.h"
#include "deploy/slurm/job_script.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/replacing_file.h"
#include "models/graph/graph_text.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

// Refuses files that cannot be written before the ONNX file, which may be large, is read.
void require_new_files(const ConvertOptions& options) {
  for (const fs::path& file : {options.out, options.weights}) {
    std::error_code ignored;
    const fs::path folder = file.parent_path();
    if (fs::is_directory(file, ignored)) {
      throw UsageError(fmt::format("{} is a folder; give a file", file.string()));
    }
    if (!folder.empty() && !fs::is_directory(folder, ignored)) {
      throw UsageError(fmt::format("{}: there is no folder {}; make it, or give another file",
                                   file.string(), folder.string()));
    }
    if (file == options.source || fs::equivalent(file, options.source, ignored)) {
      throw UsageError(fmt::format("{} is the ONNX file itself; give another file", file.string()));
    }
  }
  std::error_code ignored;
  if (fs::weakly_canonical(options.out, ignored) ==
      fs::weakly_canonical(options.weights, ignored)) {
    throw UsageError("the network and its weights are two files; found one name");
  }
}

// Refuses to overwrite the stored tensors of the ONNX file.
void require_others_stay(const ConvertOptions& options, const OnnxNetwork& network) {
  for (const fs::path& other : network.other_files) {
    for (const fs::path& file : {options.out, options.weights}) {
      std::error_code ignored;
      if (!fs::equivalent(file, other, ignored)) continue;
      throw UsageError(
          fmt::format("{} holds tensors of the ONNX file; give another file", file.string()));
    }
  }
}

// Returns the text of the network file. The text is read again here, so that the limits of --model
// file: apply to it. source: the ONNX file, for messages.
std::string network_text(const Graph& graph, const fs::path& source) {
  std::string text = to_network_file(graph, InputShape::kFixed);
  const Node& input = graph.first_input();
  const NetworkInput data{.sample_shape = input.shape,
                          .classes = static_cast<int>(graph.num_classes()),
                          .input = std::get<InputOp>(input.operation),
                          .target_shape = graph.target_shape(),
                          .target_dtype = graph.target_dtype()};
  // A message names a line of the text, which is not written yet.
  const auto refuse = [&](const std::string& message) {
    const std::size_t place = message.find(": ");
    throw UsageError(source.string() + ": it becomes a network that is refused: " +
                     (place == std::string::npos ? message : message.substr(place + 2)));
  };
  try {
    const Graph again = parse_network_file(text, "network", data);
    check(first_difference(graph, again).empty(), "a network file gives the network again");
  } catch (const UsageError& error) {
    refuse(error.what());
  } catch (const ShapeError& error) {
    refuse(error.what());
  }
  return text;
}

void write_weights(const std::vector<OnnxWeights>& weights, const fs::path& path) {
  std::vector<TensorEntry> entries;
  for (const OnnxWeights& each : weights)
    entries.push_back({.name = each.name, .shape = each.shape});
  SafetensorsWriter writer(path, {{"format", "pt"}}, std::move(entries));
  for (const OnnxWeights& each : weights) writer.append(each.values);
  writer.commit();
}

}  // namespace

int run_convert_network(const ConvertOptions& options, std::ostream& out) {
  require_new_files(options);
  const OnnxNetwork network = read_onnx_network(options.source);
  require_others_stay(options, network);
  const std::string text = network_text(network.graph, options.source);
  // Both files are complete before one of them replaces an older one.
  ReplacingFile file(options.out);
  file.write(std::as_bytes(std::span(text)));
  write_weights(network.weights, options.weights);
  file.commit();
  out << fmt::format("wrote network {} with input {}, {} nodes and {} parameters to {} and {}\n",
                     network.graph.name, network.input, network.graph.nodes.size(),
                     network.graph.num_parameters(), options.out.string(),
                     options.weights.string());
  for (const std::string& note : network.notes) log(LogLevel::kInfo, note);
  out << fmt::format(
             "train it: syncopate train --model {} --init-from {} --data DATA, with "
             "--normalize as the network was trained\n",
             shell_word("file:" + options.out.string()), shell_word(options.weights.string()))
      << std::flush;
  return 0;
}

}  // namespace syncopate
