// One step, the same for every strategy.
#pragma once

#include "strategies/strategy.h"
#include "worker/input/batch_source.h"

namespace syncopate {

// Scores summed over this task's replicas. Throws what replicas and the input throw.
Scores train_step(Strategy& strategy, BatchSource& input, const UpdateStep& step);

}  // namespace syncopate
