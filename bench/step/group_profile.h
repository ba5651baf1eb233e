// Lists the time of each fused group of operations in a training step on a GPU, and the rate at
// which the group moves the bytes that it has to move.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/backend/model.h"
#include "models/graph/operation_row.h"

namespace syncopate::bench {

// Counts the bytes of each group for `batch_size` samples with values of `element_bytes` bytes per
// element.
std::vector<GroupBytes> count_group_bytes(const Graph& graph, const std::vector<FusedGroup>& groups,
                                          std::int64_t batch_size, std::int64_t element_bytes);

// The time and the bytes of one group in a step.
struct GroupProfile {
  GroupTime time;
  GroupBytes bytes;
};
// describe_groups() returns a table with one line per kind of group and pass, the longest time
// first. groups_json() returns the numbers of every group.
std::string describe_groups(const Graph& graph, const std::vector<GroupProfile>& groups);
nlohmann::json groups_json(const Graph& graph, const std::vector<GroupProfile>& groups);

}  // namespace syncopate::bench
