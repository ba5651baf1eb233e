#include "strategies/cluster/task_placement.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace syncopate {
namespace {

// So many tasks to a node before it is the next one's turn, round after round.
std::vector<Place> deal(const std::vector<NodeTasks>& nodes, int at_a_time) {
  const int total =
      std::accumulate(nodes.begin(), nodes.end(), 0,
                      [](int sum, const NodeTasks& node) { return sum + node.tasks; });
  std::vector<int> placed(nodes.size(), 0);
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(total));
  while (static_cast<int>(places.size()) < total) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const int turn = std::min(at_a_time, nodes[n].tasks - placed[n]);
      for (int i = 0; i < turn; ++i) places.push_back({nodes[n].node, placed[n]++});
    }
  }
  return places;
}

}  // namespace

std::string describe(const Place& place) {
  return "node " + place.node + ", local rank " + std::to_string(place.local_rank);
}

std::vector<Place> place_tasks(const std::vector<NodeTasks>& nodes, std::string_view distribution,
                               int plane_size) {
  const std::string_view over_nodes = distribution.substr(0, distribution.find_first_of(":,"));
  if (over_nodes == "cyclic") return deal(nodes, 1);
  if (over_nodes == "plane") return deal(nodes, std::max(1, plane_size));
  int most = 1;
  for (const NodeTasks& node : nodes) most = std::max(most, node.tasks);
  return deal(nodes, most);
}

std::vector<Place> place_by_node(const std::vector<std::string>& nodes) {
  std::map<std::string, int, std::less<>> tasks;
  std::vector<Place> places;
  places.reserve(nodes.size());
  for (const std::string& node : nodes) places.push_back({node, tasks[node]++});
  return places;
}

}  // namespace syncopate
