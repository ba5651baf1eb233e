// The flags of `syncopate train` that say what workers wait for, and how variables are served.
#pragma once

#include <string>

#include "deploy/cli/options.h"

namespace CLI {
class App;
}

namespace syncopate {

struct ConsistencyFlags {
  std::string consistency;  // "": the strategy's own
  std::string staleness_rule = "none";
  std::string compress = "none";
  std::string partition;  // "": large variables are split
  double snapshot_every = 10.0;
};

void add_consistency_flags(CLI::App& app, ConsistencyFlags& flags, TrainOptions& options);

// Fills what follows from each flag alone. Throws UsageError.
void take_consistency_values(const ConsistencyFlags& flags, TrainOptions& options);

// Called after take_consistency_values(). Fills options.strategy.consistency and what is about
// servers. Throws UsageError.
void check_consistency(const CLI::App& app, const ConsistencyFlags& flags, TrainOptions& options);

}  // namespace syncopate
