// How much memory the stages of a pipeline take if each is a task. A pure function, for plans of
// jobs.
#pragma once

#include <cstdint>
#include <span>

#include "strategies/pipeline/stages.h"

namespace syncopate {

// Bytes of one stage.
struct StageMemory {
  std::int64_t values = 0;       // of the whole network, which every task evaluates
  std::int64_t gradients = 0;    // of the stage; twice, if several micro-batches are summed
  std::int64_t slots = 0;        // optimizer state of the stage; the first stage gathers all
  std::int64_t activations = 0;  // node outputs of the micro-batches between forward and backward
  std::int64_t handovers = 0;    // tensors to and from its neighbours
  std::int64_t all() const noexcept { return values + gradients + slots + activations + handovers; }
};

// stage: one of `stages`. samples: of a micro-batch. slots: of the optimizer, for each parameter.
// Activations are the most that a backend keeps: one that fuses operations keeps fewer.
StageMemory memory_of_stage(std::span<const Stage> stages, int stage, int micro_batches,
                            std::int64_t samples, int slots);

}  // namespace syncopate
