// --strategy pipeline over several tasks: each task computes one stage.
#pragma once

#include <memory>
#include <vector>

#include "strategies/pipeline/stages.h"
#include "strategies/strategy.h"

namespace syncopate {

// Makes the strategy of this task. `stages` are the stages of the whole network, one per task.
// options.membership must have one task per stage. Throws UsageError if the tasks have different
// networks, or cut the network at different places. Throws PeerError.
std::unique_ptr<Strategy> make_task_pipeline(const StrategyOptions& options, const Graph& graph,
                                             std::vector<Stage> stages);

}  // namespace syncopate
