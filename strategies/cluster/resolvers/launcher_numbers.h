// The four numbers that most launchers put into the environment of a task, under names of their
// own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// Names of variables.
struct NumberVariables {
  std::string_view rank;
  std::string_view size;
  std::string_view local_rank;
  std::string_view local_size;
};

// Nothing when rank or size is not set; when one of them is, a note says that `source` is ignored.
// Throws UsageError when a number is wrong.
std::optional<ClusterSpec> read_numbers(const Environment& environment, std::string_view source,
                                        const NumberVariables& names,
                                        std::vector<std::string>& notes);

}  // namespace syncopate
