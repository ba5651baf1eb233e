// One fused group lowered for the device. A group says what memory it needs, is bound to it once,
// and then only starts work on the stream: nothing is allocated in a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cuda/kernels/kernels.h"
#include "models/backend/cuda/operations.h"
#include "models/backend/cuda/precision.h"
#include "models/backend/cuda/variables.h"
#include "models/backend/model.h"
#include "models/graph/program_plan.h"

namespace syncopate::cuda {

// What the groups of one program are built from.
struct GroupContext {
  const Graph& graph;
  Mode mode = Mode::kTrain;
  std::int64_t n = 0;  // samples
  Precision precision = Precision::kF32;
  bool deterministic = false;
  bool captures = true;  // what is the same in every step is started as one
  // Of samples as the input group writes them; those beyond the network's own are zero, and only
  // convolutions read them.
  std::int64_t input_channels = 0;
  int device = 0;
  cudaStream_t stream = nullptr;
  Operations* operations = nullptr;
  DeviceVariables* variables = nullptr;
  StatisticsReducer* statistics = nullptr;

  bool trains() const { return mode == Mode::kTrain; }
  const Node& node(NodeId id) const { return graph.nodes[static_cast<std::size_t>(id)]; }
};

// On the device; null where there is nothing, or nobody wants it. Values are [n, ...] of the
// program's precision, maps NHWC.
struct GroupMemory {
  std::vector<void*> inputs;
  void* input_sums = nullptr;  // of the first input, where its group leaves some
  void* output = nullptr;
  void* output_sums = nullptr;
  std::vector<void*>
      output_gradients;  // one, or two where the group takes them; may be overwritten
  std::vector<void*> input_gradients;
  void* saved = nullptr;
  void* forward_scratch = nullptr;
  void* backward_scratch = nullptr;
};

// What is at hand in one call, on the device.
struct Step {
  const void* x = nullptr;  // the samples, as the batch has them
  const std::int32_t* labels = nullptr;
  std::int64_t loss_divisor = 1;
  LossSums* sums = nullptr;  // out
  bool operator==(const Step&) const = default;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual GroupNeeds needs() const = 0;
  virtual void bind(const GroupMemory& memory) = 0;
  virtual void forward(const Step& step) = 0;
  // Overwrites its input gradients and its parameters' gradients.
  virtual void backward(const Step& step) = 0;
};

// Throws UnavailableError where no library has the operation, DeviceError.
std::unique_ptr<Group> make_group(const GroupContext& context, const FusedGroup& group);

// The makers behind it, one file each.
std::unique_ptr<Group> make_conv_group(const GroupContext& context, const FusedGroup& group);
std::unique_ptr<Group> make_batch_norm_group(const GroupContext& context, const FusedGroup& group);
std::unique_ptr<Group> make_dense_group(const GroupContext& context, const FusedGroup& group);
std::unique_ptr<Group> make_loss_group(const GroupContext& context, const FusedGroup& group);

// f32 is rounded to TF32 for the tensor cores, unless the same bits are wanted twice.
constexpr PlanLimits limits_of(const GroupContext& context) {
  return {.deterministic = context.deterministic,
          .rounds_inputs = context.precision != Precision::kF32 || !context.deterministic};
}

// Rounded up, so that what follows is aligned.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// What lies behind `bytes` of a block.
inline void* behind(void* block, std::size_t bytes) {
  return static_cast<std::byte*>(block) + aligned(bytes);
}

// What a convolution leaves of its output for a batch norm, as GroupNeeds::output_sums: of each
// channel over all rows the sum, and the sum of squares. Null in null.
struct OutputSums {
  float* sums = nullptr;
  float* squares = nullptr;
};
constexpr std::size_t output_sums_bytes(int channels) {
  return 2 * aligned(static_cast<std::size_t>(channels) * sizeof(float));
}
inline OutputSums output_sums_at(void* memory, int channels) {
  if (memory == nullptr) return {};
  const std::size_t bytes = static_cast<std::size_t>(channels) * sizeof(float);
  return {static_cast<float*>(memory), static_cast<float*>(behind(memory, bytes))};
}

// A group without memory of its own and without backward, until it says so.
class PlainGroup : public Group {
 public:
  PlainGroup(const GroupContext& context, const FusedGroup& group)
      : context_(context), group_(group) {}
  GroupNeeds needs() const override { return {}; }
  void bind(const GroupMemory& memory) override { memory_ = memory; }
  void backward(const Step& /*step*/) override {}

 protected:
  const GroupContext& context() const noexcept { return context_; }
  const FusedGroup& group() const noexcept { return group_; }
  const GroupMemory& memory() const noexcept { return memory_; }
  const Node& main() const { return context_.node(group_.main); }
  cudaStream_t stream() const noexcept { return context_.stream; }
  DeviceVariables& variables() const noexcept { return *context_.variables; }
  // Of the first input and of the output, per sample.
  const Shape& in() const { return context_.node(group_.inputs.at(0)).shape; }
  const Shape& out() const { return context_.node(group_.output).shape; }
  std::int64_t output_elements() const { return context_.n * num_elements(out()); }
  bool wants_input_gradient(std::size_t k = 0) const {
    return memory_.input_gradients.at(k) != nullptr;
  }

 private:
  const GroupContext context_;
  const FusedGroup group_;
  GroupMemory memory_;
};

}  // namespace syncopate::cuda
