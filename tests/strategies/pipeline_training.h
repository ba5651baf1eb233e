// Small networks, their batches, and whole steps of training, for the tests of pipelines.
#pragma once

#include <cstdint>
#include <string>

#include "models/graph/graph.h"
#include "strategies/strategy.h"

namespace syncopate {

inline constexpr std::int64_t kPipelineBatch = 12;

// Returns a network of the zoo with 4 classes.
Graph small_network(const std::string& name);

// Pixels and labels that are functions of their index.
Batch batch_for(const Graph& graph, std::int64_t samples);

// Returns options of a run with batches of kPipelineBatch samples.
StrategyOptions pipeline_options(const std::string& strategy, int stages, int micro_batches);

// Trains whole steps, and returns the sum of their losses as the strategy reports them.
double train_steps(Strategy& strategy, const Batch& batch, int steps);

bool are_equal(const Tensor& left, const Tensor& right);

}  // namespace syncopate
