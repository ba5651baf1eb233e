// One training step, the same for every strategy. Called by the train loops.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "strategies/strategy.h"
#include "worker/input/batches/batch_source.h"
#include "worker/train/service_time.h"

namespace syncopate {

// Returns the profile of a step of the replica, which trains this graph. Returns nullopt if another
// device than the CPU computes the step, because the host does not know when it begins a layer.
std::optional<StepProfile> profile_of(const Graph& graph, const Replica& replica);

// Runs one replica's part of a step, on the replica's own thread; no other replica uses `batch`.
// delays: the compute delays of the replica, which have begun the step; null for no delays. Returns
// what VariableStore::commit() returns. Throws what the replica's model and store throw.
StepReport replica_step(Replica& replica, const Batch& batch, const UpdateStep& step,
                        const ps::StopCounts& stops = {}, StepDelays* delays = nullptr);

// Runs this task's part of a step: calls replica_step for each local replica with its share of the
// batch. stops: for each kind of request to stop, how many reached this task. delays: the compute
// delays of the local replicas, one element per replica; empty for no delays. Returns the sum of
// the reports of all synchronous replicas; in the middle of a round (StepReport::round_steps is 0),
// the sum of the local replicas' reports, with the mean loss of their samples. Throws what replicas
// and the input throw.
StepReport train_step(Strategy& strategy, BatchSource& input, const UpdateStep& step,
                      const ps::StopCounts& stops = {}, std::span<StepDelays> delays = {});

}  // namespace syncopate
