// A Group is one fused group lowered for the device. A group states its memory needs and is bound
// to memory once. After that it only launches work on the stream, so a step allocates nothing.
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
  // Whether algorithms may be timed to choose the fastest. False for a last batch with fewer
  // samples, for which timing costs more than a fast algorithm saves.
  bool measures = true;
  // Whether input groups fold the samples (conv_shape.h). True if only convolutions read the
  // samples.
  bool folds_inputs = false;
  int device = 0;
  cudaStream_t stream = nullptr;
  Operations* operations = nullptr;
  DeviceVariables* variables = nullptr;
  StatisticsReducer* statistics = nullptr;

  // Returns the shape to which the group of this input folds the samples; nullopt if the samples
  // are not folded.
  std::optional<FoldShape> input_fold(NodeId input) const {
    if (!folds_inputs) return std::nullopt;
    return sample_fold(graph, input, n, precision);
  }
  bool trains() const { return mode == Mode::kTrain; }
  const Node& node(NodeId id) const { return graph.nodes[static_cast<std::size_t>(id)]; }
};

// The memory of a group on the device. A pointer is null if the value does not exist or is never
// read. Values are [n, ...] in the program's precision; maps are NHWC.
struct GroupMemory {
  std::vector<void*> inputs;
  void* input_sums = nullptr;  // output_sums of the group that computes inputs[0]
  void* output = nullptr;
  void* output_sums = nullptr;
  // The gradients of the group's output, which the group may overwrite: one, or two if the group
  // adds them itself (GroupNeeds::takes_two_gradients).
  std::vector<void*> output_gradients;
  std::vector<void*> input_gradients;
  void* saved = nullptr;
  void* forward_scratch = nullptr;
  void* backward_scratch = nullptr;
};

// The arguments of one forward or backward call, as device addresses.
struct Step {
  std::vector<const void*> inputs;      // as Batch::inputs, in the types of the batch
  const void* target = nullptr;         // as Batch::target
  const std::uint64_t* keys = nullptr;  // as Batch::keys; null if no dropout is trained
  std::int64_t loss_divisor = 1;
  LossSums* sums = nullptr;  // written by the loss group
  bool operator==(const Step&) const = default;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual GroupNeeds needs() const = 0;
  virtual void bind(const GroupMemory& memory) = 0;
  virtual void forward(const Step& step) = 0;
  // Runs the backward pass of the group: overwrites the gradients of its inputs and parameters.
  virtual void backward(const Step& step) = 0;
};

// What make_group() needs to know about a group: its place in the program.
struct GroupSite : GroupContext {
  const FusedGroup& group;

  // Return the shape of the first input and of the output, for one sample.
  const Shape& in() const { return node(group.inputs.at(0)).shape; }
  const Shape& out() const { return node(group.output).shape; }
};

// Make the group with the main operation `op`. Each overload is in the file of the group's class;
// if an operation has no overload, the backend does not compile. Throw UnavailableError if no
// library has the operation, and DeviceError.
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

// Makes a group of the class GroupOf<T>, where T is the C++ type of the program's precision.
template <template <typename> class GroupOf, typename... Arguments>
std::unique_ptr<Group> make_typed(const GroupSite& site, const Arguments&... arguments) {
  return with_type(site.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<GroupOf<T>>(site, site.group, arguments...);
  });
}

// Returns the limits on the algorithms of a group's operations. f32 operands may be rounded to TF32
// for the tensor cores, except with --deterministic.
constexpr PlanLimits limits_of(const GroupContext& context) {
  return {.deterministic = context.deterministic,
          .rounds_inputs = context.precision != Precision::kF32 || !context.deterministic,
          .measures = context.measures};
}

// Rounds `bytes` up to a multiple of kAlignmentBytes.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// Returns the first aligned address after the first `bytes` bytes of a block of memory.
inline void* behind(void* block, std::size_t bytes) {
  return static_cast<std::byte*>(block) + aligned(bytes);
}

// Sums over a convolution's output for the batch norm that reads it: for each channel, the sum and
// the sum of squares over all rows. Both arrays lie in the memory that GroupNeeds::output_sums
// reserves; they are null if no memory is reserved.
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

// A base class of groups that stores the memory of the group. A derived class overrides needs() if
// it needs memory, and backward() if it has a backward pass.
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
  // x() returns input k, y() the output, dy() the first gradient of the output, and dx() the
  // gradient of input k.
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
  // in() returns the shape of the group's first input for one sample, and out() the shape of its
  // output.
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

// A group that calls one kernel in each pass: forward_kernel(x, y, stream) and backward_kernel(dy,
// dx, stream).
template <typename T, typename Forward, typename Backward>
class KernelGroup final : public PlainGroup {
 public:
  KernelGroup(const GroupSite& site, const Forward& forward_kernel, const Backward& backward_kernel)
      : PlainGroup(site, site.group), forward_(forward_kernel), backward_(backward_kernel) {}
  void forward(const Step& /*step*/) override { forward_(x<T>(), y<T>(), stream()); }
  void backward(const Step& /*step*/) override {
    if (wants_input_gradient()) backward_(dy<T>(), dx<T>(), stream());
  }

 private:
  const Forward forward_;
  const Backward backward_;
};

template <typename Forward, typename Backward>
std::unique_ptr<Group> make_kernel_group(const GroupSite& site, const Forward& forward,
                                         const Backward& backward) {
  return with_type(site.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<KernelGroup<T, Forward, Backward>>(site, forward, backward);
  });
}

}  // namespace syncopate::cuda
