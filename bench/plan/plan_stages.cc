#include "bench/plan/plan_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <ostream>

#include "bench/harness/report.h"

namespace syncopate::bench {
namespace {

std::string megabytes(std::int64_t bytes) {
  return number_text(static_cast<double>(bytes) / 1e6) + " MB";
}

std::string percent_of(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

}  // namespace

double PlannedPipeline::idle_share_of_equal_stages() const noexcept {
  const auto n = static_cast<double>(stages.size());
  return (n - 1.0) / (micro_batches + n - 1.0);
}

PlannedPipeline plan_stages(std::span<const Stage> cut, const PipelineLoad& load,
                            std::int64_t samples, int slots, double samples_seconds,
                            double step_seconds) {
  PlannedPipeline pipeline{
      .micro_batches = load.micro_batches, .samples = samples, .step_seconds = step_seconds};
  for (std::size_t s = 0; s < cut.size(); ++s) {
    const double busy = load.work[s] * load.micro_batches * samples_seconds;
    pipeline.stages.push_back(
        {.last_node = cut[s].last_node,
         .work = load.work[s],
         .idle_share = std::max(0.0, 1.0 - busy / step_seconds),
         .memory = memory_of_stage(cut, static_cast<int>(s), load.micro_batches, samples, slots)});
  }
  return pipeline;
}

void print_stages(std::ostream& out, const std::string& name, const PlannedPipeline& pipeline) {
  out << fmt::format(
      "stages of {}: {} micro-batches of {} samples, a step takes {} ms; with equal stages and "
      "free "
      "messages each would be idle {} of it\n",
      name, pipeline.micro_batches, pipeline.samples, number_text(1e3 * pipeline.step_seconds),
      percent_of(pipeline.idle_share_of_equal_stages()));
  std::vector<std::vector<std::string>> cells = {{"stage", "ends behind", "work", "idle", "memory",
                                                  "values", "gradients", "slots", "activations",
                                                  "hand-overs"}};
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const PlannedStage& stage = pipeline.stages[s];
    const StageMemory& memory = stage.memory;
    cells.push_back({std::to_string(s), stage.last_node, percent_of(stage.work),
                     percent_of(stage.idle_share), megabytes(memory.all()),
                     megabytes(memory.values), megabytes(memory.gradients), megabytes(memory.slots),
                     megabytes(memory.activations), megabytes(memory.handovers)});
  }
  out << format_table(cells);
}

nlohmann::json json_of(const PlannedPipeline& pipeline) {
  nlohmann::json stages = nlohmann::json::array();
  for (const PlannedStage& stage : pipeline.stages) {
    stages.push_back({{"ends_behind", stage.last_node},
                      {"work", stage.work},
                      {"idle_share", stage.idle_share},
                      {"value_bytes", stage.memory.values},
                      {"gradient_bytes", stage.memory.gradients},
                      {"slot_bytes", stage.memory.slots},
                      {"activation_bytes", stage.memory.activations},
                      {"handover_bytes", stage.memory.handovers}});
  }
  return {{"micro_batches", pipeline.micro_batches},
          {"samples_per_micro_batch", pipeline.samples},
          {"step_seconds", pipeline.step_seconds},
          {"idle_share_of_equal_stages", pipeline.idle_share_of_equal_stages()},
          {"stages", stages}};
}

}  // namespace syncopate::bench
