// --strategy pipeline over several tasks: each task computes one stage.
#pragma once

#include <memory>
#include <vector>

#include "strategies/pipeline/stages.h"
#include "strategies/strategy.h"

namespace syncopate {

// Makes this task's part. stages: of the whole network, one per task. options: with a membership of
// several tasks. Throws UsageError when the tasks cut different networks, or at different places;
// PeerError.
std::unique_ptr<Strategy> make_task_pipeline(const StrategyOptions& options, const Graph& graph,
                                             std::vector<Stage> stages);

}  // namespace syncopate
