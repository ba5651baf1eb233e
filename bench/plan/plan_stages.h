// The stages of a pipeline in a plan: what each stage computes, how long it waits, and the memory
// of its task.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/virtual_clock/pipeline_times.h"
#include "strategies/pipeline/stages.h"

namespace syncopate::bench {

struct PlannedStage {
  std::string last_node;    // the last node of the stage
  double work = 0.0;        // fraction of the network's multiply-adds
  double idle_share = 0.0;  // fraction of a step in which the stage does not compute
  StageMemory memory;
};

// The pipeline of a row of the plan. Each worker computes one stage.
struct PlannedPipeline {
  int micro_batches = 1;
  std::int64_t samples = 0;  // samples of a micro-batch
  double step_seconds = 0.0;
  std::vector<PlannedStage> stages{};

  // Returns the idle share that each stage would have if all stages did equal work and messages
  // took no time. Source: Huang et al. 2019, "GPipe", section 2.3.
  double idle_share_of_equal_stages() const noexcept;
};

// Computes the work, the idle share and the memory of each of the stages `cut` of a network. load:
// the load of these stages. samples: the samples of a micro-batch. slots: the number of slots of
// the optimizer. samples_seconds: the time that one device needs to compute all stages for a
// micro-batch. step_seconds: the time of a step.
PlannedPipeline plan_stages(std::span<const Stage> cut, const PipelineLoad& load,
                            std::int64_t samples, int slots, double samples_seconds,
                            double step_seconds);

// Prints a line about the pipeline and a table of its stages. name: the name of the pipeline in the
// output, such as "pipeline, 4 workers".
void print_stages(std::ostream& out, const std::string& name, const PlannedPipeline& pipeline);
nlohmann::json json_of(const PlannedPipeline& pipeline);

}  // namespace syncopate::bench
