// One step, the same for every strategy.
#pragma once

#include <array>
#include <span>

#include "strategies/strategy.h"
#include "worker/input/batch_source.h"
#include "worker/train/service_time.h"

namespace syncopate {

// One replica's part of a step, on its own thread: the batch is its alone. Returns what its
// variables' commit() returns. Throws what the replica throws.
StepReport replica_step(Replica& replica, const Batch& batch, const UpdateStep& step,
                        const ps::StopCounts& stops = {});

// The task's part. stops: the requests to stop that reached this task, by kind. delays: by replica
// of this task, or none. Returns what all replicas in sync reported, summed. Throws what replicas
// and the input throw.
StepReport train_step(Strategy& strategy, BatchSource& input, const UpdateStep& step,
                      const ps::StopCounts& stops = {}, std::span<StepDelays> delays = {});

}  // namespace syncopate
