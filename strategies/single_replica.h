// A strategy of one replica, on a backend that the caller has made.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "models/backend/backend.h"
#include "strategies/strategy.h"

namespace syncopate {

// backend: null stands for the backend of the options. idle_seconds:
// SynchronousJob::idle_seconds().
std::unique_ptr<Strategy> make_single_replica(
    const StrategyOptions& options, const Graph& graph, std::unique_ptr<Backend> backend,
    std::function<std::vector<double>()> idle_seconds = [] { return std::vector<double>(); });

}  // namespace syncopate
