#include "worker/run/run_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <variant>

#include "models/base/errors.h"
#include "models/base/process_limits.h"
#include "models/base/resource_limits.h"
#include "models/optim/optimizer.h"
#include "models/optim/outer_rule.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/local_updates/round_report.h"
#include "worker/run/run_sizes.h"

namespace syncopate {
namespace {

constexpr auto kElementBytes = static_cast<std::int64_t>(sizeof(float));

// Returns the node that owns the output of `id`: a view shares the output of another node.
NodeId owner_of(const Graph& graph, NodeId id) {
  for (;;) {
    const Node& node = graph.nodes[static_cast<std::size_t>(id)];
    const bool is_view = std::holds_alternative<FlattenOp>(node.operation) ||
                         std::holds_alternative<ReshapeOp>(node.operation);
    if (!is_view) return id;
    id = node.inputs.front();
  }
}

// Returns the elements of a sample that stay in memory between forward and backward: the inputs of
// layers with weights, because the gradients of these weights are computed from them. Samples are
// not counted, and what else a backend keeps is its own choice.
std::int64_t kept_elements(const Graph& graph) {
  std::set<NodeId> kept;
  for (const Node& node : graph.nodes) {
    const bool has_weights = std::holds_alternative<Conv2dOp>(node.operation) ||
                             std::holds_alternative<DenseOp>(node.operation);
    if (has_weights) kept.insert(owner_of(graph, node.inputs.front()));
  }
  std::int64_t elements = 0;
  for (const NodeId id : kept) {
    const Node& node = graph.nodes[static_cast<std::size_t>(id)];
    if (!std::holds_alternative<InputOp>(node.operation)) elements += num_elements(node.shape);
  }
  return elements;
}

double mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

RunMemory least_memory(const TrainOptions& options, const Graph& graph) {
  const StrategyOptions& strategy = options.strategy;
  const std::int64_t values = kElementBytes * graph.num_parameters();
  RunMemory memory{.values = values, .replicas = strategy.replicas};
  if (has_stages(options)) return memory;  // gradients and activations are divided among stages
  memory.gradients = std::max(1, strategy.lanes) * values;
  if (!has_servers(options) || has_rounds(options)) {
    const auto slots =
        ps::make_shard_optimizer(strategy.optimizer, strategy.consistency, 1)->slot_names().size();
    memory.slots = static_cast<std::int64_t>(slots) * values;
  }
  if (strategy_of(options).has_rounds) {
    const int workers = count_workers(options);
    const bool have_own_slots = workers > 1 && strategy.local.inner_state == InnerState::kKeep;
    if (have_own_slots && options.cluster.is_chief() && !options.loop.checkpoint_dir.empty()) {
      memory.collected = workers * memory.slots;
    }
    memory.values *= strategy.replicas;
    memory.slots *= strategy.replicas;
    const OuterRuleOptions outer = outer_options(strategy.local);
    if (needs_displacements(outer, workers)) {
      memory.outer = (1 + std::ssize(make_outer_rule(outer)->slot_names())) * values;
    }
  }
  if (pushes_displacements(strategy.local)) {
    memory.values *= strategy.replicas;
    memory.slots *= strategy.replicas;
    memory.outer = values;        // the start of the round
    if (!has_servers(options)) {  // this process also has the shard
      const auto outer_slots = make_outer_rule(shard_outer_options(strategy))->slot_names().size();
      memory.values += values;
      memory.slots += static_cast<std::int64_t>(outer_slots) * values;
    }
  }
  memory.activations = kElementBytes * micro_batch_size(strategy) * kept_elements(graph);
  return memory;
}

std::string memory_refusal(const TrainOptions& options, const Graph& graph,
                           const HostMemory& host) {
  const RunMemory memory = least_memory(options, graph);
  std::string found;
  if (memory.all() > host.available) {
    found = fmt::format("in this process, and {:.0f} MiB are available", mebibytes(host.available));
  } else if (host.total > 0 && host.tasks * memory.all() > host.total) {
    found = fmt::format("in each of the {} tasks of this host, and they share {:.0f} MiB",
                        host.tasks, mebibytes(host.total));
  } else {
    return "";
  }
  return fmt::format(
      "network {} needs at least {:.0f} MiB of memory {}: {:.0f} MiB of values, {:.0f} MiB of "
      "optimizer state{}, and for each of {} replica{} {:.0f} MiB of gradients ({} threads) and "
      "{:.0f} MiB of activations ({} samples){}; try a smaller --batch-size-per-replica, fewer "
      "--threads or replicas, or a smaller network",
      graph.name, mebibytes(memory.all()), found, mebibytes(memory.values), mebibytes(memory.slots),
      memory.collected > 0
          ? fmt::format(", {:.0f} MiB of all workers' optimizer state for a checkpoint",
                        mebibytes(memory.collected))
          : "",
      memory.replicas, memory.replicas == 1 ? "" : "s", mebibytes(memory.gradients),
      std::max(1, options.strategy.lanes), mebibytes(memory.activations),
      micro_batch_size(options.strategy),
      memory.outer > 0 ? fmt::format(" and {:.0f} MiB of outer values", mebibytes(memory.outer))
                       : "");
}

void require_memory(const TrainOptions& options, const Graph& graph, const Membership* membership) {
  if (options.strategy.devices.front().kind != DeviceKind::kCpu) return;
  const std::string refusal = memory_refusal(options, graph,
                                             {.available = obtainable_memory(),
                                              .total = total_memory(),
                                              .tasks = tasks_of_host(options, membership)});
  if (!refusal.empty()) throw UsageError(refusal + "; " + memory_advice());
}

}  // namespace syncopate
