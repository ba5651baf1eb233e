// `syncopate export`: writes the weights of a checkpoint for other programs.
#include <fmt/format.h>

#include <ostream>

#include "deploy/commands/commands.h"
#include "deploy/commands/trained_network.h"
#include "worker/checkpoint/export_weights.h"

namespace syncopate {

int run_export(const ExportOptions& options, std::ostream& out) {
  const CheckpointInfo info = read_checkpoint_info(options.checkpoint);
  const Graph graph = require_recorded_network(info);
  const ExportedWeights exported = export_weights(info, graph, options.out);
  out << fmt::format("wrote {} of {} at step {}: {} tensors with {} parameters, to {}\n",
                     info.has_average ? "the moving average" : "the weights", info.model,
                     info.progress.at.step, exported.tensors, exported.parameters,
                     options.out.string())
      << fmt::format("the network reads {}\n", exported.normalization) << std::flush;
  return 0;
}

}  // namespace syncopate
