#include "bench/step/group_profile.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bench/harness/report.h"
#include "models/graph/program_plan.h"

namespace syncopate::bench {
namespace {

const OperationRow& row_of_group(const Graph& graph, const FusedGroup& group) {
  return row_of(graph.nodes[static_cast<std::size_t>(group.main)].operation);
}

// The time and the bytes of all groups of one operation in one pass.
struct KindSum {
  int groups = 0;
  double seconds = 0.0;
  double bytes = 0.0;
};

}  // namespace

std::vector<GroupBytes> count_group_bytes(const Graph& graph, const std::vector<FusedGroup>& groups,
                                          std::int64_t batch_size, std::int64_t element_bytes) {
  const auto bytes_of = [&](NodeId id) {
    const Shape& shape = graph.nodes[static_cast<std::size_t>(id)].shape;
    return static_cast<double>(num_elements(shape) * batch_size * element_bytes);
  };
  std::vector<GroupBytes> counted;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const FusedGroup& group = groups[i];
    GroupValues values{.output = bytes_of(group.output),
                       .element_bytes = static_cast<double>(element_bytes),
                       .relu = group.relu,
                       .add = group.add};
    if (!group.inputs.empty()) values.first_input = bytes_of(group.inputs.front());
    for (const NodeId input : group.inputs) {
      values.inputs += bytes_of(input);
      if (has_gradient(groups, input)) values.input_gradients += bytes_of(input);
    }
    values.gradients = values.output * static_cast<double>(consumers_of(groups, i).size());
    counted.push_back(row_of_group(graph, group).bytes(values));
  }
  return counted;
}

std::string describe_groups(const Graph& graph, const std::vector<GroupProfile>& groups) {
  std::map<std::pair<std::string_view, std::string_view>, KindSum> sums;  // by kind and pass
  double total = 0.0;
  const auto add = [&](const GroupProfile& group, std::string_view pass, double seconds,
                       double bytes) {
    KindSum& sum = sums[{row_of_group(graph, group.time.group).shown_noun(), pass}];
    ++sum.groups;
    sum.seconds += seconds;
    sum.bytes += bytes;
    total += seconds;
  };
  for (const GroupProfile& group : groups) {
    add(group, "forward", group.time.forward_seconds, group.bytes.forward);
    if (group.bytes.backward > 0.0) {
      add(group, "backward", group.time.backward_seconds, group.bytes.backward);
    }
  }
  std::vector<std::pair<std::pair<std::string_view, std::string_view>, KindSum>> sorted(
      sums.begin(), sums.end());
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::vector<std::vector<std::string>> rows{{"groups", "pass", "number", "ms", "%", "GB", "GB/s"}};
  for (const auto& [key, sum] : sorted) {
    rows.push_back({std::string(key.first), std::string(key.second), std::to_string(sum.groups),
                    number_text(1e3 * sum.seconds), number_text(100.0 * sum.seconds / total),
                    number_text(1e-9 * sum.bytes), number_text(1e-9 * sum.bytes / sum.seconds)});
  }
  return format_table(rows) + "all groups, started one by one: " + number_text(1e3 * total) +
         " ms, without the update\n";
}

nlohmann::json groups_json(const Graph& graph, const std::vector<GroupProfile>& groups) {
  nlohmann::json list = nlohmann::json::array();
  for (const GroupProfile& group : groups) {
    const Node& output = graph.nodes[static_cast<std::size_t>(group.time.group.output)];
    list.push_back({{"kind", row_of_group(graph, group.time.group).shown_noun()},
                    {"output", output.shape},
                    {"forward_seconds", group.time.forward_seconds},
                    {"backward_seconds", group.time.backward_seconds},
                    {"forward_bytes", group.bytes.forward},
                    {"backward_bytes", group.bytes.backward}});
  }
  return list;
}

}  // namespace syncopate::bench
