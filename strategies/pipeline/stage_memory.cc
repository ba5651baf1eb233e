#include "strategies/pipeline/stage_memory.h"

#include <cstddef>
#include <variant>

#include "strategies/pipeline/handover.h"

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
  const std::int64_t network_bytes = kF32 * stages.back().end_value;
  StageMemory memory{.values = network_bytes,
                     .gradients = stage_bytes * (micro_batches > 1 ? 2 : 1),
                     .slots = (stage == 0 ? network_bytes : stage_bytes) * slots};
  std::int64_t outputs = 0;  // of a sample
  for (const Node& node : own.graph.nodes) {
    if (!std::holds_alternative<InputOp>(node.operation)) outputs += num_elements(node.shape);
  }
  memory.activations =
      kF32 * samples * outputs * micro_batches_in_flight(stage, count, micro_batches);
  // Tensors in both directions, of the micro-batches in flight on the earlier stage.
  const auto handovers_behind = [&](int earlier) {
    return 2 * micro_batches_in_flight(earlier, count, micro_batches) *
           output_bytes(stages[static_cast<std::size_t>(earlier)], samples);
  };
  if (stage + 1 < count) memory.handovers += handovers_behind(stage);
  if (stage > 0) memory.handovers += handovers_behind(stage - 1);
  return memory;
}

}  // namespace syncopate
