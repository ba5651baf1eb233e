// The stages of a pipeline in a plan: what each computes, how long it waits, and the memory of its
// task.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/virtual_clock/pipeline_times.h"
#include "strategies/pipeline/stage_memory.h"

namespace syncopate::bench {

struct PlannedStage {
  std::string last_node;    // the stage ends behind this node
  double work = 0.0;        // part of the multiply-adds of the network
  double idle_share = 0.0;  // part of a step that passes without computing
  StageMemory memory;
};

// The stages of a row, which are workers; empty for other strategies.
struct PlannedPipeline {
  int micro_batches = 1;
  std::int64_t samples = 0;  // of a micro-batch
  double step_seconds = 0.0;
  std::vector<PlannedStage> stages;

  // The idle share that each stage would have if all did equal work and messages took no time.
  // Source: Huang et al. 2019, "GPipe", section 2.3.
  double idle_share_of_equal_stages() const noexcept;
};

// cut: the stages of the network. load: their load. slots: of the optimizer, for each parameter.
// samples_seconds: how long one device computes on a micro-batch.
PlannedPipeline plan_stages(std::span<const Stage> cut, const PipelineLoad& load,
                            std::int64_t samples, int slots, double samples_seconds,
                            double step_seconds);

// Prints a line about the pipeline and a table of its stages. name: "pipeline, 4 workers".
void print_stages(std::ostream& out, const std::string& name, const PlannedPipeline& pipeline);
nlohmann::json json_of(const PlannedPipeline& pipeline);

}  // namespace syncopate::bench
