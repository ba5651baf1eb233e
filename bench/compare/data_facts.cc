#include "bench/compare/data_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

#include "bench/compare/chance.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/graph/graph_text.h"
#include "worker/run/run_data.h"

namespace syncopate::bench {
namespace {

constexpr std::size_t kMostListedOperations = 16;

// Returns such as "flatten [784], dense [10], softmax-cross-entropy; 7,850 parameters".
std::string layers_of(const Graph& graph) {
  std::vector<std::string> operations;
  for (const Node& node : graph.nodes) {
    operations.emplace_back(name(node.operation));
    if (!node.shape.empty()) operations.back() += " " + to_string(node.shape);
  }
  std::set<std::string_view> initial;
  for (const Parameter& parameter : graph.parameters) initial.insert(name(parameter.init));
  return fmt::format(
      "{}; {} parameters; initial values {}",
      operations.size() > kMostListedOperations ? fmt::format("{} operations", operations.size())
                                                : fmt::format("{}", fmt::join(operations, ", ")),
      decimal_text(static_cast<double>(graph.num_parameters()), 0), fmt::join(initial, ", "));
}

}  // namespace

DataFacts data_facts_of(const CompareOptions& options, const DataSplits& data) {
  DataFacts facts{.chance = chance_of(data),
                  .train_samples = data.train->size(),
                  .data_hash = hash_of_all_samples(data)};
  const TrainOptions& shared = options.shared.options;
  try {
    const Graph graph =
        network_for_data(options.model, options.data, data, shared.network, shared.label_smoothing);
    facts.network_hash = network_hash(to_text(graph));
    facts.network_layers = layers_of(graph);
  } catch (const UsageError&) {
    // The plan of the runs reports the error, unless each run has its own data.
  }
  return facts;
}

}  // namespace syncopate::bench
