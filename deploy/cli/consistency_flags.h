// The flags of `syncopate train` about shared variables: the consistency rule, stale gradients,
// compression, and the placement of variables on servers.
#pragma once

#include <string>

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

struct ConsistencyFlags {
  std::string consistency;  // "": the strategy's own
  std::string staleness_rule = "none";
  std::string compress = "none";
  std::string partition;  // "": large variables are split
};

void add_consistency_flags(FlagSet& flags, ConsistencyFlags& consistency, TrainOptions& options);

// Fills what follows from each flag alone. Throws UsageError.
void take_consistency_flags(const ConsistencyFlags& consistency, TrainOptions& options);
// Called after take_consistency_flags(), when the cluster is known. Fills
// options.strategy.consistency. Throws UsageError for flags that contradict each other.
void check_consistency(const FlagSet& flags, const ConsistencyFlags& consistency,
                       TrainOptions& options);

}  // namespace syncopate
