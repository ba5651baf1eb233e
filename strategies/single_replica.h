// A strategy of one replica, on a backend that the caller has made.
#pragma once

#include <memory>

#include "models/backend/backend.h"
#include "strategies/strategy.h"

namespace syncopate {

// backend: null: that of the options.
std::unique_ptr<Strategy> make_single_replica(const StrategyOptions& options, const Graph& graph,
                                              std::unique_ptr<Backend> backend);

}  // namespace syncopate
