// The two halves of --strategy central-storage: central_storage.cc has the replicas that keep step,
// and chooses; central_storage_asynchronous.cc has those that do not.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace syncopate {

// Where options.consistency keeps no step. Throws UsageError for what cannot be had together.
std::unique_ptr<Strategy> make_asynchronous_central_storage(const StrategyOptions& options,
                                                            const Graph& graph);

}  // namespace syncopate
