// `syncopate export`: writes the weights of a checkpoint, or its network with them, for other
// programs.
#include <fmt/format.h>

#include <ostream>

#include "deploy/commands/commands.h"
#include "deploy/commands/trained_network.h"
#include "deploy/onnx/write_onnx_network.h"
#include "models/base/errors.h"
#include "worker/checkpoint/export_weights.h"

namespace syncopate {

namespace fs = std::filesystem;

int run_export(const ExportOptions& options, std::ostream& out) {
  const CheckpointInfo info = find_checkpoint(options.checkpoint);
  const Graph graph = recorded_network(info);
  require_export_file(info, options.out);
  if (!options.onnx && options.out.extension() == ".onnx") {
    throw UsageError(
        fmt::format("{}: give --onnx for an ONNX file, or another name for a safetensors file",
                    options.out.string()));
  }
  if (options.onnx && options.out.extension() == ".safetensors") {
    throw UsageError(fmt::format("{}: --onnx writes an ONNX file; give it another name, such as {}",
                                 options.out.string(),
                                 fs::path(options.out).replace_extension(".onnx").string()));
  }
  const TrainedTensors tensors(info, graph);
  const std::string normalization = describe_normalization(graph);
  if (options.onnx) {
    std::map<std::string, std::string> metadata = {{"input", normalization},
                                                   {"loss", std::string(name(graph.loss().kind))}};
    if (!info.progress.class_names.empty()) metadata["classes"] = info.progress.class_names;
    write_onnx_network(
        graph, [&](std::size_t i) { return tensors.read(i); }, metadata, options.out);
  } else {
    export_weights(tensors, graph, options.out);
  }
  out << fmt::format("wrote {}{} of {} at step {}: {} tensors with {} parameters, to {}\n",
                     options.onnx ? "the network with " : "",
                     info.has_average ? "the moving average" : "the weights", info.model,
                     info.progress.at.step, tensors.entries().size(), graph.num_parameters(),
                     options.out.string())
      << fmt::format("the network reads {}\n", normalization) << std::flush;
  return 0;
}

}  // namespace syncopate
