// Computes when the stages of a pipeline compute under the virtual clock. The stages follow the
// order 1F1B of strategies/pipeline/stage_worker.h, and a tensor takes the time of a message
// (time_model.h). All functions are pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/virtual_clock/time_model.h"
#include "strategies/pipeline/stages.h"

namespace syncopate::bench {

// The work and the messages of a step of a pipeline. They do not depend on the speed of the
// devices.
struct PipelineLoad {
  std::vector<double> work;  // by stage: fraction of the network's multiply-adds
  // For each stage except the last: the bytes of its output for a micro-batch. The gradient of the
  // output has as many bytes.
  std::vector<std::int64_t> output_bytes;
  int micro_batches = 1;

  int stages() const noexcept { return static_cast<int>(work.size()); }
};

// Returns the work and the messages of a step of the pipeline with these stages. samples: the
// number of samples in a micro-batch.
PipelineLoad load_of(std::span<const Stage> stages, int micro_batches, std::int64_t samples);

// Returns the time at which all stages have ended a step. begin[s]: when stage s begins.
// computation[s][m]: how long stage s computes on micro-batch m. A third of this time is in the
// forward pass, because the backward pass has two products for each product of the forward pass. At
// the end, the results of all stages are summed by a ring all-reduce of a few bytes.
VirtualTime end_of_pipeline_step(const PipelineLoad& load, const Link& link,
                                 std::span<const VirtualTime> begin,
                                 const std::vector<std::vector<VirtualTime>>& computation);

// Returns the number of bytes that a stage sends in a step, which equals the number of bytes that
// it receives.
std::int64_t bytes_handed_over(const PipelineLoad& load, int stage);

}  // namespace syncopate::bench
