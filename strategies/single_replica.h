// Makes a strategy with one replica, on a backend of the caller.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "models/backend/backend.h"
#include "strategies/strategy.h"

namespace syncopate {

// Returns a strategy with one replica that computes on `backend`; if `backend` is null, the options
// choose the backend. The strategy's SynchronousJob::idle_seconds() returns what the function
// `idle_seconds` returns.
std::unique_ptr<Strategy> make_single_replica(
    const StrategyOptions& options, const Graph& graph, std::unique_ptr<Backend> backend,
    std::function<std::vector<double>()> idle_seconds = [] { return std::vector<double>(); });

}  // namespace syncopate
