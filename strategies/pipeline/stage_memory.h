// How much memory a stage of a pipeline takes if each stage is a task. Used to plan jobs.
#pragma once

#include <cstdint>
#include <span>

#include "strategies/pipeline/stages.h"

namespace syncopate {

// Bytes of one stage.
struct StageMemory {
  std::int64_t values = 0;  // values of the whole network, which every task holds
  // Gradients of the stage; doubled if the gradients of several micro-batches are summed.
  std::int64_t gradients = 0;
  // The optimizer slots of the stage. On the first stage: the slots of all stages, which the first
  // stage collects.
  std::int64_t slots = 0;
  std::int64_t activations = 0;  // node outputs of the micro-batches in flight
  std::int64_t handovers = 0;    // tensors to and from neighbouring stages
  std::int64_t all() const noexcept { return values + gradients + slots + activations + handovers; }
};

// Returns the memory of stage number `stage`. `samples` is the size of a micro-batch, `slots` the
// number of optimizer slots per parameter. `activations` is an upper limit: a backend that fuses
// operations keeps fewer node outputs. Pure function.
StageMemory memory_of_stage(std::span<const Stage> stages, int stage, int micro_batches,
                            std::int64_t samples, int slots);

}  // namespace syncopate
