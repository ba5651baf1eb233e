#include "strategies/pipeline/stage_memory.h"

#include <cstddef>
#include <variant>

#include "strategies/pipeline/stage_worker.h"

namespace syncopate {
namespace {

constexpr auto kF32 = static_cast<std::int64_t>(sizeof(float));

std::int64_t output_bytes(const Stage& stage, std::int64_t samples) {
  return kF32 * samples * num_elements(stage.graph.logits_shape());
}

}  // namespace

StageMemory memory_of_stage(std::span<const Stage> stages, int stage, int micro_batches,
                            std::int64_t samples, int slots) {
  const Stage& own = stages[static_cast<std::size_t>(stage)];
  const int count = static_cast<int>(stages.size());
  const std::int64_t stage_bytes = kF32 * (own.end_value - own.first_value);
  StageMemory memory{.values = kF32 * stages.back().end_value,
                     .gradients = stage_bytes * (micro_batches > 1 ? 2 : 1),
                     .slots = stage_bytes * slots};
  std::int64_t outputs = 0;  // of a sample
  for (const Node& node : own.graph.nodes) {
    if (!std::holds_alternative<InputOp>(node.operation)) outputs += num_elements(node.shape);
  }
  memory.activations =
      kF32 * samples * outputs * micro_batches_in_flight(stage, count, micro_batches);
  // A tensor for each micro-batch of a step, in both directions.
  if (stage + 1 < count) memory.handovers += 2 * micro_batches * output_bytes(own, samples);
  if (stage > 0) {
    const Stage& before = stages[static_cast<std::size_t>(stage - 1)];
    memory.handovers += 2 * micro_batches * output_bytes(before, samples);
  }
  return memory;
}

}  // namespace syncopate
