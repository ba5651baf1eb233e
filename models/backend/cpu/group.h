// One fused group lowered for one lane. A group says what memory it needs, is bound to it once, and
// then only computes: nothing is allocated in a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/backend/cpu/kernels/kernels.h"
#include "models/backend/cpu/lanes.h"
#include "models/backend/cpu/packed_weights.h"
#include "models/backend/model.h"
#include "models/graph/program_plan.h"

namespace syncopate {

// How a value lies in memory.
enum class Layout : std::uint8_t {
  kVector,       // [n, features]
  kInterleaved,  // [n, H, W, C]
  kPlanar,       // [n, C, H, W]
  kBlocked,      // [n, ceil(C / B), H, W, B]
};

// A value (a node's output) as this program keeps it.
struct ValueType {
  Shape shape;  // per sample: [H, W, C] or [F]
  Layout layout = Layout::kVector;
  std::int64_t channels() const { return shape.back(); }
  std::int64_t pixels() const { return shape.size() == 3 ? shape[0] * shape[1] : 1; }
};
// f32 elements of one sample, padding of blocked channels included.
std::int64_t elements_per_sample(const ValueType& type, int block);

// What the groups of one lane's program are built from.
struct GroupContext {
  const OneDnn& onednn;
  const Graph& graph;
  const CpuKernels& kernels;
  PackedWeights& packed;
  ParameterArena& arena;
  StateBlock& state;
  Mode mode;
  bool winograd;
  std::int64_t n;  // this lane's samples
  int lane;
  int lanes;
  float* gradients;  // [arena total]: this lane's gradient block
};

struct GroupMemory {
  std::vector<float*> inputs;
  float* output = nullptr;
  std::vector<float*>
      output_gradients;  // one, or two where the group takes them; may be overwritten
  std::vector<float*> input_gradients;  // null where nobody wants it
  std::byte* saved = nullptr;
  std::byte* forward_scratch = nullptr;
  std::byte* backward_scratch = nullptr;
};

// What one lane has at hand in one call.
struct LaneStep {
  LanePool& lanes;
  const std::byte* x = nullptr;  // this lane's samples, as the batch has them
  std::span<const std::int32_t> labels;
  std::int64_t loss_divisor = 1;
  double loss = 0.0;  // out
  std::int64_t num_correct = 0;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual GroupNeeds needs() const = 0;
  virtual void bind(const GroupMemory& memory) = 0;
  virtual void forward(LaneStep& step) = 0;
  // Overwrites its input gradients and its parameters' gradients.
  virtual void backward(LaneStep& step) = 0;
};

// The gradient of a parameter in this lane's block.
inline float* gradient_of(const GroupContext& context, int parameter) {
  return context.gradients + context.arena.layout().offset(static_cast<std::size_t>(parameter));
}
// Its values, which stay where they are.
inline const float* value_of(const GroupContext& context, int parameter) {
  return context.arena.value(static_cast<std::size_t>(parameter)).f32().data();
}

}  // namespace syncopate
