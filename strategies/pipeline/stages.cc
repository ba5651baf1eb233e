#include "strategies/pipeline/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include "models/base/errors.h"
#include "models/graph/fused_groups.h"
#include "strategies/pipeline/handover.h"

namespace syncopate {
namespace {

// Returns the nodes behind which the network may be cut, in forward order.
std::vector<NodeId> places_to_cut(const Graph& graph) {
  const auto size = static_cast<NodeId>(graph.nodes.size());
  std::vector<NodeId> last_reader(graph.nodes.size(), -1);
  for (NodeId id = 0; id < size; ++id) {
    for (const NodeId input : graph.nodes[static_cast<std::size_t>(id)].inputs) {
      last_reader[static_cast<std::size_t>(input)] = id;
    }
  }
  std::vector<bool> ends_a_group(graph.nodes.size());
  for (const FusedGroup& group : match_groups(graph, /*fuse=*/true)) {
    if (!has_main<InputOp>(graph, group) && !has_main<LossOp>(graph, group)) {
      ends_a_group[static_cast<std::size_t>(group.output)] = true;
    }
  }
  NodeId last_input = 0;
  for (const NodeId input : graph.inputs()) last_input = std::max(last_input, input);
  std::vector<NodeId> places;
  NodeId read_until = 0;  // the last reader of the nodes before `id`
  for (NodeId id = 0; id < size; ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (id > last_input && read_until <= id && ends_a_group[i]) places.push_back(id);
    read_until = std::max(read_until, last_reader[i]);
  }
  return places;
}

// What the nodes up to each node hold together.
struct Sums {
  explicit Sums(const Graph& graph) : multiply_adds{0}, parameters{0} {
    for (const Node& node : graph.nodes) {
      multiply_adds.push_back(multiply_adds.back() + multiply_adds_of(graph, node));
      parameters.push_back(parameters.back() + node.parameters.size());
    }
  }
  // Of the nodes (after, last].
  std::int64_t multiply_adds_between(NodeId after, NodeId last) const {
    return multiply_adds[static_cast<std::size_t>(last + 1)] -
           multiply_adds[static_cast<std::size_t>(after + 1)];
  }
  bool has_parameters_between(NodeId after, NodeId last) const {
    return parameters[static_cast<std::size_t>(last + 1)] >
           parameters[static_cast<std::size_t>(after + 1)];
  }

  std::vector<std::int64_t> multiply_adds;
  std::vector<std::size_t> parameters;
};

// Returns the name of a place to cut. Operations such as ReLU have no name, so it is the name of
// the last named node up to the place.
std::string name_of_place(const Graph& graph, NodeId place) {
  for (NodeId id = place; id >= 0; --id) {
    const std::string& name = graph.nodes[static_cast<std::size_t>(id)].name;
    if (!name.empty()) return name;
  }
  return "";
}

// Returns the last node of a stage that ends behind the node `name`: the last place that has this
// name or the name of a part of it.
NodeId find_place(const Graph& graph, std::span<const NodeId> places, const std::string& name) {
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const std::string its_name = name_of_place(graph, *place);
    if (its_name == name || its_name.starts_with(name + ".")) return *place;
  }
  throw UsageError(fmt::format("--cut {}: network {} cannot be cut there; choose from {}", name,
                               graph.name, fmt::join(names_to_cut_behind(graph), ", ")));
}

// Returns the last nodes of the stages. best[s][p]: the least multiply-adds of the largest of s + 1
// stages that end behind place p; the last place is the loss. origin: of choose_stages().
std::vector<NodeId> choose_ends(const Graph& graph, int count, const std::string& origin) {
  constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();
  std::vector<NodeId> places = places_to_cut(graph);
  places.push_back(static_cast<NodeId>(graph.nodes.size()) - 1);
  const std::size_t stages = static_cast<std::size_t>(count);
  std::vector best(stages, std::vector<std::int64_t>(places.size(), kImpossible));
  std::vector before(stages, std::vector<std::size_t>(places.size(), 0));
  const Sums sums(graph);
  for (std::size_t p = 0; p < places.size(); ++p) {
    if (!sums.has_parameters_between(-1, places[p])) continue;
    best[0][p] = sums.multiply_adds_between(-1, places[p]);
  }
  for (std::size_t s = 1; s < stages; ++s) {
    for (std::size_t p = 0; p < places.size(); ++p) {
      for (std::size_t q = 0; q < p; ++q) {
        if (best[s - 1][q] == kImpossible) continue;
        if (!sums.has_parameters_between(places[q], places[p])) continue;
        const std::int64_t largest =
            std::max(best[s - 1][q], sums.multiply_adds_between(places[q], places[p]));
        if (largest >= best[s][p]) continue;
        best[s][p] = largest;
        before[s][p] = q;
      }
    }
  }
  if (best.back().back() == kImpossible) {
    // Two neighbours of a cut into s stages are one of a cut into s - 1.
    const auto most = std::ranges::find_if(
        best, [&](const auto& of_count) { return of_count.back() == kImpossible; });
    throw UsageError(fmt::format(
        "{}: network {} cannot be cut into {} stages with parameters; it gives at most {}", origin,
        graph.name, count, most - best.begin()));
  }
  std::vector<NodeId> ends(stages);
  std::size_t place = places.size() - 1;
  for (std::size_t s = stages; s-- > 0;) {
    ends[s] = places[place];
    place = before[s][place];
  }
  return ends;
}

// Copies the entries of `whole` that the nodes (after, last] use, which follow each other, and
// returns the number of entries before them.
template <typename Entry>
std::size_t copy_entries(const Graph& whole, NodeId after, NodeId last,
                         std::vector<int> Node::*indices, const std::vector<Entry>& from,
                         std::vector<Entry>& to) {
  std::size_t first = 0;
  for (NodeId id = 0; id <= after; ++id) {
    first += (whole.nodes[static_cast<std::size_t>(id)].*indices).size();
  }
  for (NodeId id = after + 1; id <= last; ++id) {
    for (const int index : whole.nodes[static_cast<std::size_t>(id)].*indices) {
      check(static_cast<std::size_t>(index) == first + to.size(),
            "parameters and state are in the order of the nodes");
      to.push_back(from.at(static_cast<std::size_t>(index)));
    }
  }
  return first;
}

// Returns where entry `i` begins, or the layout ends.
std::int64_t begin_of(const ArenaLayout& layout, std::size_t i) {
  return i < layout.entries().size() ? layout.offset(i) : layout.total();
}

Stage make_stage(const Graph& whole, NodeId after, NodeId last) {
  Stage stage;
  Graph& graph = stage.graph;
  graph.name = whole.name;
  std::map<NodeId, NodeId> id_in_stage;
  if (after >= 0) {
    const Node& before = whole.nodes[static_cast<std::size_t>(after)];
    // The features of a vector share a mean and a deviation, the channels of a map have their own.
    const auto values = before.shape.size() == 3 ? static_cast<std::size_t>(before.shape[2]) : 1;
    graph.nodes.push_back({.name = "x",
                           .operation = InputOp{.dtype = DType::kF32,
                                                .mean = std::vector<float>(values, 0.0F),
                                                .stddev = std::vector<float>(values, 1.0F),
                                                .is_differentiated = true},
                           .inputs = {},
                           .shape = before.shape,
                           .parameters = {},
                           .state = {}});
    id_in_stage[after] = 0;
  }
  const std::size_t first_parameter =
      copy_entries(whole, after, last, &Node::parameters, whole.parameters, graph.parameters);
  const std::size_t first_state =
      copy_entries(whole, after, last, &Node::state, whole.state, graph.state);
  for (NodeId id = after + 1; id <= last; ++id) {
    Node node = whole.nodes[static_cast<std::size_t>(id)];
    for (NodeId& input : node.inputs) input = id_in_stage.at(input);
    for (int& parameter : node.parameters) parameter -= static_cast<int>(first_parameter);
    for (int& state : node.state) state -= static_cast<int>(first_state);
    id_in_stage[id] = static_cast<NodeId>(graph.nodes.size());
    graph.nodes.push_back(std::move(node));
  }
  if (static_cast<std::size_t>(last) + 1 < whole.nodes.size()) {
    graph.nodes.push_back({.name = "",
                           .operation = LossOp{.kind = LossKind::kLaterStages},
                           .inputs = {id_in_stage.at(last)},
                           .shape = {},
                           .parameters = {},
                           .state = {}});
  }
  const ArenaLayout values = whole.parameter_layout();
  stage.first_value = begin_of(values, first_parameter);
  stage.end_value = begin_of(values, first_parameter + graph.parameters.size());
  const ArenaLayout states = whole.state_layout();
  stage.first_state = begin_of(states, first_state);
  stage.end_state = begin_of(states, first_state + graph.state.size());
  stage.multiply_adds = Sums(whole).multiply_adds_between(after, last);
  stage.last_node = name_of_place(whole, last);
  return stage;
}

std::vector<Stage> make_stages(const Graph& whole, std::span<const NodeId> ends) {
  std::vector<Stage> stages;
  NodeId after = -1;
  for (const NodeId last : ends) {
    stages.push_back(make_stage(whole, after, last));
    after = last;
  }
  return stages;
}

constexpr auto kF32 = static_cast<std::int64_t>(sizeof(float));

std::int64_t output_bytes(const Stage& stage, std::int64_t samples) {
  return kF32 * samples * num_elements(stage.graph.logits_shape());
}

}  // namespace

std::vector<Stage> cut_into_stages(const Graph& whole, int count, const std::string& origin) {
  return make_stages(
      whole, choose_ends(whole, count, origin.empty() ? origin_of_stages(count, false) : origin));
}

std::vector<Stage> cut_behind(const Graph& whole, std::span<const std::string> names) {
  const std::vector<NodeId> places = places_to_cut(whole);
  const Sums sums(whole);
  std::vector<NodeId> ends;
  for (const std::string& name : names) ends.push_back(find_place(whole, places, name));
  ends.push_back(static_cast<NodeId>(whole.nodes.size()) - 1);
  NodeId after = -1;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const bool is_last = s + 1 == ends.size();
    if (ends[s] <= after) {
      throw UsageError(
          fmt::format("--cut {}: it is not behind {} in network {}; give the nodes in "
                      "the order of the network, each once",
                      names[s], names[s - 1], whole.name));
    }
    if (!sums.has_parameters_between(after, ends[s])) {
      throw UsageError(fmt::format(
          "--cut {}: the stage {} it has no parameters; choose another node of network {}",
          names[is_last ? s - 1 : s], is_last ? "behind" : "up to", whole.name));
    }
    after = ends[s];
  }
  return make_stages(whole, ends);
}

std::vector<Stage> choose_stages(const Graph& whole, int count, std::span<const std::string> cut,
                                 const std::string& origin) {
  if (cut.empty()) return cut_into_stages(whole, count, origin);
  if (std::cmp_not_equal(cut.size() + 1, count)) {
    throw UsageError(fmt::format("{}: --cut {} gives {} stages; give one node less than stages",
                                 origin, fmt::join(cut, ","), cut.size() + 1));
  }
  return cut_behind(whole, cut);
}

std::string origin_of_stages(int count, bool has_tasks) {
  return has_tasks ? fmt::format("{} tasks", count) : fmt::format("--stages {}", count);
}

std::vector<std::string> names_to_cut_behind(const Graph& graph) {
  const Sums sums(graph);
  const auto last = static_cast<NodeId>(graph.nodes.size()) - 1;
  std::vector<std::string> names;
  for (const NodeId place : places_to_cut(graph)) {
    if (!sums.has_parameters_between(-1, place) || !sums.has_parameters_between(place, last)) {
      continue;
    }
    std::string name = name_of_place(graph, place);
    const bool is_new = names.empty() || names.back() != name;
    if (is_new && !name.empty()) names.push_back(std::move(name));
  }
  return names;
}

std::string describe_cut(std::span<const Stage> stages) {
  std::string text;
  for (const Stage& stage : stages.first(stages.size() - 1)) {
    text += (text.empty() ? "" : ", ") + stage.last_node;
  }
  return text;
}

StageMemory memory_of_stage(std::span<const Stage> stages, int stage, int micro_batches,
                            std::int64_t samples, int slots) {
  const Stage& own = stages[static_cast<std::size_t>(stage)];
  const int count = static_cast<int>(stages.size());
  const std::int64_t stage_bytes = kF32 * (own.end_value - own.first_value);
  const std::int64_t network_bytes = kF32 * stages.back().end_value;
  StageMemory memory{.values = network_bytes,
                     .gradients = stage_bytes * (micro_batches > 1 ? 2 : 1),
                     .slots = (stage == 0 ? network_bytes : stage_bytes) * slots};
  std::int64_t outputs = 0;  // of a sample
  for (const Node& node : own.graph.nodes) {
    if (!std::holds_alternative<InputOp>(node.operation)) outputs += num_elements(node.shape);
  }
  memory.activations =
      kF32 * samples * outputs * micro_batches_in_flight(stage, count, micro_batches);
  // Tensors in both directions, of the micro-batches in flight on the earlier stage.
  const auto handovers_behind = [&](int earlier) {
    return 2 * micro_batches_in_flight(earlier, count, micro_batches) *
           output_bytes(stages[static_cast<std::size_t>(earlier)], samples);
  };
  if (stage + 1 < count) memory.handovers += handovers_behind(stage);
  if (stage > 0) memory.handovers += handovers_behind(stage - 1);
  return memory;
}

}  // namespace syncopate
