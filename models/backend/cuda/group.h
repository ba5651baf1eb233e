// A Group is one fused group lowered for the device. It states its memory needs, is bound to memory
// once, and from then on only starts work on the stream: a step allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/backend/cuda/conv_shape.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/operations.h"
#include "models/backend/cuda/precision.h"
#include "models/backend/cuda/variables.h"
#include "models/backend/model.h"
#include "models/graph/program_plan.h"

namespace syncopate::cuda {

// What the groups of one program need to be built for the device.
struct GroupContext {
  const Graph& graph;
  Mode mode = Mode::kTrain;
  std::int64_t n = 0;  // the number of samples of the batch
  Precision precision = Precision::kF32;
  bool deterministic = false;
  bool captures = true;  // whether work equal in every step is captured as a CUDA graph
  // Whether algorithms may be timed. For a smaller last batch this is not worth the time.
  bool measures = true;
  // Whether input groups fold the samples (conv_shape.h), because only convolutions read them.
  bool folds_inputs = false;
  int device = 0;
  cudaStream_t stream = nullptr;
  Operations* operations = nullptr;
  DeviceVariables* variables = nullptr;
  StatisticsReducer* statistics = nullptr;

  // Returns how the group of an input writes the samples; no value: as they are.
  std::optional<FoldShape> input_fold(NodeId input) const {
    if (!folds_inputs) return std::nullopt;
    return sample_fold(graph, input, n, precision);
  }
  bool trains() const { return mode == Mode::kTrain; }
  const Node& node(NodeId id) const { return graph.nodes[static_cast<std::size_t>(id)]; }
};

// GroupMemory lists a group's memory on the device. A pointer is null if its value does not exist
// or is never read. Values are [n, ...] in the program's precision; maps are NHWC.
struct GroupMemory {
  std::vector<void*> inputs;
  void* input_sums = nullptr;  // batch-norm sums of the first input, if its group leaves them
  void* output = nullptr;
  void* output_sums = nullptr;
  std::vector<void*>
      output_gradients;  // the gradients of the group's output, one or two; may be overwritten
  std::vector<void*> input_gradients;
  void* saved = nullptr;
  void* forward_scratch = nullptr;
  void* backward_scratch = nullptr;
};

// Step holds the arguments of one forward or backward call, as device addresses.
struct Step {
  std::vector<const void*> inputs;      // as Batch::inputs, in the batch's own types
  const void* target = nullptr;         // as Batch::target
  const std::uint64_t* keys = nullptr;  // as Batch::keys; null if no dropout trains
  std::int64_t loss_divisor = 1;
  LossSums* sums = nullptr;  // the sums of the loss, written by the loss group
  bool operator==(const Step&) const = default;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual GroupNeeds needs() const = 0;
  virtual void bind(const GroupMemory& memory) = 0;
  virtual void forward(const Step& step) = 0;
  // Runs backward: overwrites the gradients of the group's inputs and parameters.
  virtual void backward(const Step& step) = 0;
};

// A group's place in a program: what its maker knows of it.
struct GroupSite : GroupContext {
  const FusedGroup& group;
};

// Make the group with the main operation `op`, each in the file of its class: an operation without
// an overload does not compile. Throw UnavailableError if no library has the operation, and
// DeviceError.
std::unique_ptr<Group> make_group(const GroupSite& site, const InputOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const Conv2dOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const ConvTranspose2dOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const BatchNormOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const LayerNormOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const DropoutOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const ReluOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const ActivationOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const MaxPoolOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const AveragePoolOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const GlobalAveragePoolOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const FlattenOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const DenseOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const AddOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const MultiplyOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const ConcatOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const SliceOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const UpsampleOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const SoftmaxOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const ReshapeOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const TransposeOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const ReduceMeanOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const MatmulOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const ShortcutOp& op);
std::unique_ptr<Group> make_group(const GroupSite& site, const LossOp& op);

// Makes a group of a class template. Its parameter is the C++ type of the program's precision.
template <template <typename> class GroupOf, typename... Arguments>
std::unique_ptr<Group> make_typed(const GroupSite& site, const Arguments&... arguments) {
  return with_type(site.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<GroupOf<T>>(site, site.group, arguments...);
  });
}

// Returns which algorithms a group's operations may use: f32 operands may be rounded to TF32 for
// the tensor cores, except under --deterministic.
constexpr PlanLimits limits_of(const GroupContext& context) {
  return {.deterministic = context.deterministic,
          .rounds_inputs = context.precision != Precision::kF32 || !context.deterministic,
          .measures = context.measures};
}

// Rounds `bytes` up to a multiple of the alignment, so that the memory behind them is aligned.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// Returns the address that follows the first `bytes` bytes of a block of memory.
inline void* behind(void* block, std::size_t bytes) {
  return static_cast<std::byte*>(block) + aligned(bytes);
}

// The sums of a convolution's output that GroupNeeds::output_sums reserves for a batch norm: per
// channel the sum over all rows, and the sum of squares. The pointers are null if no memory is
// reserved.
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

// PlainGroup is a base class for groups. By default it needs no memory and has no backward pass.
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
  // x, y, dy and dx return the first or another input, the output, the gradient of the output and
  // the gradient of an input.
  template <typename T>
  const T* x(std::size_t k = 0) const {
    return static_cast<const T*>(memory_.inputs[k]);
  }
  template <typename T>
  T* y() const {
    return static_cast<T*>(memory_.output);
  }
  template <typename T>
  T* dy() const {
    return static_cast<T*>(memory_.output_gradients[0]);
  }
  template <typename T>
  T* dx(std::size_t k = 0) const {
    return static_cast<T*>(memory_.input_gradients[k]);
  }
  cudaStream_t stream() const noexcept { return context_.stream; }
  DeviceVariables& variables() const noexcept { return *context_.variables; }
  // in() and out() return the shapes of the group's first input and of its output, per sample.
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
