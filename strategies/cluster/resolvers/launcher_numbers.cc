#include "strategies/cluster/resolvers/launcher_numbers.h"

#include "strategies/cluster/resolvers/source_variables.h"

namespace syncopate {

std::optional<ClusterSpec> read_numbers(const Environment& environment, std::string_view source,
                                        const NumberVariables& names,
                                        std::vector<std::string>& notes) {
  if (!has_all(environment, source, {names.rank, names.size}, notes)) return std::nullopt;
  ClusterSpec spec;
  spec.index = number_of(environment, names.rank, 0, kMostTasks, 0);
  spec.world_size = number_of(environment, names.size, 1, kMostTasks, 1);
  require_below(names.rank, spec.index, names.size, spec.world_size);
  spec.is_local_told = filled(environment, names.local_rank).has_value();
  spec.local_rank = number_of(environment, names.local_rank, 0, kMostTasks, 0);
  spec.local_size = number_of(environment, names.local_size, 1, kMostTasks, spec.local_rank + 1);
  require_below(names.local_rank, spec.local_rank, names.local_size, spec.local_size);
  return spec;
}

}  // namespace syncopate
