// One step, the same for every strategy.
#pragma once

#include <array>

#include "strategies/strategy.h"
#include "worker/input/batch_source.h"

namespace syncopate {

// stops: the requests to stop that reached this task, by kind. Returns what all replicas in sync
// reported, summed. Throws what replicas and the input throw.
StepReport train_step(Strategy& strategy, BatchSource& input, const UpdateStep& step,
                      const std::array<int, kStopKinds>& stops = {});

}  // namespace syncopate
