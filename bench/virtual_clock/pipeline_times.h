// When the stages of a pipeline compute under the virtual clock: the order 1F1B of
// strategies/pipeline/stage_worker.h, with tensors that take the time of messages (time_model.h).
// Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/virtual_clock/time_model.h"
#include "strategies/pipeline/stages.h"

namespace syncopate::bench {

// What a step of a pipeline costs, whatever the speed of its devices.
struct PipelineLoad {
  std::vector<double> work;  // by stage: its part of the multiply-adds of the network
  // By stage but the last: the bytes that a micro-batch's output has, and its gradient.
  std::vector<std::int64_t> output_bytes;
  int micro_batches = 1;

  int stages() const noexcept { return static_cast<int>(work.size()); }
};

// samples: of a micro-batch.
PipelineLoad load_of(std::span<const Stage> stages, int micro_batches, std::int64_t samples);

// Returns when all stages have ended a step. begin: when each stage begins. computation: how long
// stage s computes on micro-batch m, at [s][m]: a third of it in the forward pass, because a
// backward pass has two products for each one. The reports of the stages are summed at the end,
// which takes a ring all-reduce of a few bytes.
VirtualTime end_of_pipeline_step(const PipelineLoad& load, const Link& link,
                                 std::span<const VirtualTime> begin,
                                 const std::vector<std::vector<VirtualTime>>& computation);

// Returns the bytes that stage `stage` sends or receives in a step: both are equal.
std::int64_t bytes_handed_over(const PipelineLoad& load, int stage);

}  // namespace syncopate::bench
