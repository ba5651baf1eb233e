#include "strategies/cluster/resolvers/slurm_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "strategies/cluster/resolvers/launcher_variables.h"

namespace syncopate {
namespace {

constexpr int kFirstPort = 20000;  // the rendezvous' ports begin below the range of ephemeral ports
constexpr int kPorts = 10000;
constexpr int kMaxSlurmPort = 65535;
constexpr int kMostComponents = 1024;

std::string required(const Environment& environment, std::string_view variable) {
  std::optional<std::string> value = filled(environment, variable);
  if (value) return *std::move(value);
  throw UsageError(
      fmt::format("{} is not set in this step of Slurm's: expected what srun sets; start the tasks "
                  "with srun and let it pass its variables on, or give --rank, --world-size and "
                  "--rendezvous",
                  variable));
}

int required_number(const Environment& environment, std::string_view variable, int least) {
  return number_within(variable, required(environment, variable), least, kMostTasks);
}

// Returns the nodes of the step and their numbers of tasks, in Slurm's order.
std::vector<NodeTasks> read_nodes(const Environment& environment, int tasks) {
  const std::string list = required(environment, "SLURM_STEP_NODELIST");
  const std::string counts_text = required(environment, "SLURM_STEP_TASKS_PER_NODE");
  const std::vector<std::string> names = expand_hostlist(list, "SLURM_STEP_NODELIST");
  const std::vector<int> counts = expand_task_counts(counts_text, "SLURM_STEP_TASKS_PER_NODE");
  if (names.size() != counts.size()) {
    throw UsageError(
        fmt::format("SLURM_STEP_TASKS_PER_NODE={} counts tasks of {} nodes, SLURM_STEP_NODELIST={} "
                    "names {}; expected one count per node, as srun sets them",
                    counts_text, counts.size(), list, names.size()));
  }
  std::vector<NodeTasks> nodes;
  int total = 0;
  for (std::size_t n = 0; n < names.size(); ++n) {
    nodes.push_back({names[n], counts[n]});
    total += counts[n];
  }
  if (total != tasks) {
    throw UsageError(fmt::format(
        "SLURM_STEP_TASKS_PER_NODE={} makes {} tasks, SLURM_STEP_NUM_TASKS={}; expected "
        "the same, as srun sets them",
        counts_text, total, tasks));
  }
  return nodes;
}

// Returns the nodes of each component of a heterogeneous job, and nothing for any other job.
std::vector<std::vector<std::string>> read_components(const Environment& environment) {
  const int otherwise = number_of(environment, "SLURM_PACK_SIZE", 0, kMostComponents, 0);
  const int size = number_of(environment, "SLURM_HET_SIZE", 0, kMostComponents, otherwise);
  std::vector<std::vector<std::string>> components;
  for (int i = 0; i < size; ++i) {
    std::string variable = fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", i);
    // `srun A : B` outside of a heterogeneous allocation sets only variables with the old names,
    // which have PACK instead of HET.
    if (!filled(environment, variable)) {
      variable = fmt::format("SLURM_JOB_NODELIST_PACK_GROUP_{}", i);
    }
    const std::optional<std::string> list = filled(environment, variable);
    if (!list) return {};
    components.push_back(expand_hostlist(*list, variable));
  }
  return components;
}

// Groups the step's nodes by component. Within a component they follow the order of its own list.
// Returns one group with all nodes when there are no components, or when a node is in none of them.
std::vector<std::vector<NodeTasks>> by_component(
    const std::vector<NodeTasks>& nodes, const std::vector<std::vector<std::string>>& components) {
  std::vector<std::vector<NodeTasks>> groups;
  std::size_t found = 0;
  for (const std::vector<std::string>& component : components) {
    std::vector<NodeTasks> group;
    for (const std::string& name : component) {
      const auto node = std::ranges::find(nodes, name, &NodeTasks::node);
      if (node != nodes.end()) group.push_back(*node);
    }
    found += group.size();
    if (!group.empty()) groups.push_back(std::move(group));
  }
  if (found != nodes.size()) return {nodes};
  return groups;
}

// Returns the place of every rank, or nothing when it is unknown. `own` is the group of nodes of
// this task. SLURM_DISTRIBUTION applies to that group only; Slurm itself sets it to cyclic when a
// component has one task per node. The other groups are assumed to be distributed by block.
std::vector<Place> place_groups(const std::vector<std::vector<NodeTasks>>& groups, std::size_t own,
                                const Environment& environment, const std::string& distribution) {
  const bool is_arbitrary = distribution.starts_with("arbitrary") && groups[own].size() > 1;
  if (is_arbitrary && groups.size() == 1) {
    const auto list = filled(environment, "SLURM_ARBITRARY_NODELIST");
    if (!list) return {};
    return place_by_node(expand_hostlist(*list, "SLURM_ARBITRARY_NODELIST"));
  }
  const int plane = number_of(environment, "SLURM_DIST_PLANESIZE", 1, kMostTasks, 1);
  std::vector<Place> places;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool is_known = g == own && !is_arbitrary;
    for (Place& place : place_tasks(groups[g], is_known ? distribution : "block", plane)) {
      place.is_assumed = !is_known && groups[g].size() > 1;
      places.push_back(std::move(place));
    }
  }
  return places;
}

// Derives the port from a hash of the step's id (FNV-1a), so that all tasks of a step compute one
// number, and two steps on a node rarely share it.
std::uint16_t derive_port(std::string_view id) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : id) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
  return static_cast<std::uint16_t>(kFirstPort + hash % kPorts);
}

std::uint16_t read_port(const Environment& environment, std::string_view id) {
  const auto reserved = filled(environment, "SLURM_STEP_RESV_PORTS");
  if (!reserved) return derive_port(id);
  const std::string first = reserved->substr(0, reserved->find_first_of("-,"));
  return static_cast<std::uint16_t>(
      number_within("SLURM_STEP_RESV_PORTS", first, 1, kMaxSlurmPort));
}

// Returns the node that runs the batch script, which is the first node of the job.
std::string first_node_of_job(const Environment& environment,
                              const std::vector<std::vector<std::string>>& components) {
  if (!components.empty()) return components.front().front();
  const auto list = filled(environment, "SLURM_JOB_NODELIST");
  return list ? expand_hostlist(*list, "SLURM_JOB_NODELIST").front() : "";
}

// Whether this is the step of a batch script or an interactive shell, which has one task and a
// number from the end of the range. Source: slurm.h, SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP.
bool is_shell(std::string_view step_id) {
  constexpr std::uint32_t kFirstOfThese = 0xfffffff0;
  return parse_number<std::uint32_t>(step_id).value_or(0) >= kFirstOfThese;
}

}  // namespace

bool is_in_slurm_step(const Environment& environment) {
  if (!filled(environment, "SLURM_PROCID")) return false;
  const auto id = filled(environment, "SLURM_STEP_ID");
  if (!id) return filled(environment, "SLURM_STEP_NUM_TASKS").has_value();
  return !is_shell(*id);
}

SlurmStep read_slurm_step(const Environment& environment) {
  SlurmStep step;
  step.tasks = required_number(environment, "SLURM_STEP_NUM_TASKS", 1);
  step.rank = required_number(environment, "SLURM_PROCID", 0);
  require_below("SLURM_PROCID", step.rank, "SLURM_STEP_NUM_TASKS", step.tasks);
  const std::vector<NodeTasks> nodes = read_nodes(environment, step.tasks);
  const std::vector<std::vector<std::string>> components = read_components(environment);
  const std::vector<std::vector<NodeTasks>> groups = by_component(nodes, components);
  int ranks = 0;
  for (const std::vector<NodeTasks>& group : groups) {
    if (step.rank >= ranks) step.group = static_cast<int>(step.group_sizes.size());
    int size = 0;
    for (const NodeTasks& node : group) size += node.tasks;
    step.group_sizes.push_back(size);
    ranks += size;
  }
  step.distribution = filled(environment, "SLURM_DISTRIBUTION").value_or("block");
  step.places =
      place_groups(groups, static_cast<std::size_t>(step.group), environment, step.distribution);
  if (step.places.size() != static_cast<std::size_t>(step.tasks)) step.places.clear();

  // If SLURMD_NODENAME or SLURM_LOCALID is missing, as in a recorded environment, the task's node
  // and local rank follow from its rank.
  const Place expected =
      step.places.empty() ? Place{} : step.places[static_cast<std::size_t>(step.rank)];
  step.place.node = filled(environment, "SLURMD_NODENAME").value_or(expected.node);
  step.place.local_rank =
      number_of(environment, "SLURM_LOCALID", 0, kMostTasks, expected.local_rank);
  for (const NodeTasks& node : nodes) {
    if (node.node == step.place.node) step.local_tasks = node.tasks;
  }

  const std::string job = filled(environment, "SLURM_JOB_ID").value_or("0");
  step.id = fmt::format("{}.{}", job, filled(environment, "SLURM_STEP_ID").value_or("0"));
  step.nonce_file = fmt::format(".syncopate-slurm-{}.{}", step.id,
                                filled(environment, "SLURM_RESTART_COUNT").value_or("0"));
  step.port = read_port(environment, step.id);
  step.launch_host = filled(environment, "SLURM_LAUNCH_NODE_IPADDR").value_or("");
  if (filled(environment, "ENVIRONMENT") == "BATCH") {
    step.launch_node = first_node_of_job(environment, components);
  }
  return step;
}

}  // namespace syncopate
