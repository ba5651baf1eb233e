// Lists where the time of a training step on a GPU goes: the time of each fused group, and the rate
// at which it moves the bytes that it has to move.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/backend/model.h"
#include "models/graph/graph.h"

namespace syncopate::bench {

// Bytes that the kernels of a group read and write in device memory, if no data stays in a cache
// between kernels. Weights and values per channel are not counted.
struct GroupBytes {
  double forward = 0.0;
  double backward = 0.0;
};
// Counts the bytes of each group for `batch_size` samples whose values have `element_bytes` bytes
// per element.
std::vector<GroupBytes> count_group_bytes(const Graph& graph, const std::vector<FusedGroup>& groups,
                                          std::int64_t batch_size, std::int64_t element_bytes);

// A GroupProfile is one group's share of a step.
struct GroupProfile {
  GroupTime time;
  GroupBytes bytes;
};
// Returns a table with one line per kind of group and pass, the longest time first, and the groups
// one by one as JSON.
std::string describe_groups(const std::vector<GroupProfile>& groups);
nlohmann::json groups_json(const Graph& graph, const std::vector<GroupProfile>& groups);

}  // namespace syncopate::bench
