// `syncopate network`: prints a network as a table, or as a file that --model file:NET.json reads.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "deploy/cli/command_line.h"
#include "deploy/commands/commands.h"
#include "models/graph/graph_text.h"
#include "strategies/pipeline/stages.h"
#include "worker/run/run_data.h"
#include "worker/run/run_memory.h"
#include "worker/train/progress.h"

namespace syncopate {
namespace {

// Returns a number with a comma after each third digit: 1,234,567.
std::string grouped(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::int64_t parameters_of(const Graph& graph, const Node& node) {
  std::int64_t count = 0;
  for (const int p : node.parameters) {
    count += num_elements(graph.parameters[static_cast<std::size_t>(p)].shape);
  }
  return count;
}

// Describes the memory that a step of `syncopate train` with default flags takes, by the sum with
// which train refuses a network that cannot fit.
std::string describe_memory(const Graph& graph) {
  const TrainOptions train = parse_shared_train({});
  const RunMemory memory = least_memory(train, graph);
  const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return fmt::format(
      "a training step takes at least {:.1f} MiB: {:.1f} of values, {:.1f} of gradients, {:.1f} of "
      "optimizer\n  state (--optimizer {}), {:.1f} of activations (--batch-size-per-replica {})\n",
      mebibytes(memory.all()), mebibytes(memory.values), mebibytes(memory.gradients),
      mebibytes(memory.slots), train.strategy.optimizer.name, mebibytes(memory.activations),
      train.strategy.batch_size_per_replica);
}

// The mark of a node behind which --cut takes the network apart.
constexpr const char* kCut = "+";

void print_table(const Graph& graph, const std::string& data_flag, std::ostream& out) {
  std::size_t name_width = 24;  // columns of ordinary names
  for (const Node& node : graph.nodes) name_width = std::max(name_width, node.name.size() + 2);
  const auto print_line = [&](const auto&... columns) {
    out << fmt::format("{:<2}{:<{}}{:<22}{:<18}{:>14}{:>18}\n", columns...);
  };
  const auto count = [](std::int64_t number) { return number == 0 ? "-" : grouped(number); };
  const std::vector<std::string> cuts = names_to_cut_behind(graph);
  std::int64_t multiply_adds = 0;
  out << fmt::format("network {} for --data {}, hash {}\n\n", graph.name, data_flag,
                     network_hash(to_text(graph)));
  print_line("", "name", name_width, "operation", "output", "parameters", "multiply-adds");
  for (const Node& node : graph.nodes) {
    const std::int64_t work = multiply_adds_of(graph, node);
    multiply_adds += work;
    print_line(std::ranges::count(cuts, node.name) > 0 ? kCut : "",
               node.name.empty() ? "-" : node.name, name_width, name(node.operation),
               to_string(node.shape), count(parameters_of(graph, node)), count(work));
  }
  print_line("", "all", name_width, "", "", grouped(graph.num_parameters()),
             grouped(multiply_adds));
  out << "\n" << describe_memory(graph);
  if (cuts.empty()) return;
  out << fmt::format(
      "\n{} train --strategy pipeline --cut NAME,... cuts the network behind the node and the "
      "nodes\n  without names that follow it\n",
      kCut);
}

}  // namespace

int run_network(const NetworkOptions& options, std::ostream& out) {
  const auto display = make_progress_display(true);
  const DataSplits data =
      open_dataset(options.data, {.cache_dir = options.cache_dir,
                                  .seed = options.seed,
                                  .on_progress = show_progress(*display, "preparing the data"),
                                  .image = options.image});
  display->finish();
  const Graph graph = network_template(options.model, options.data, data, options.network);
  if (options.json) {
    out << to_network_file(graph) << std::flush;
  } else {
    print_table(graph, options.data, out);
    out << std::flush;
  }
  return 0;
}

}  // namespace syncopate
