// The fused groups of the CPU backend, for one lane. A group states its memory needs and is bound
// to its memory once, so that a step allocates nothing. models/backend/cuda/group.h has the same
// interface for CUDA, and the same structure on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "models/backend/cpu/kernels/cpu_kernels.h"
#include "models/backend/cpu/lanes.h"
#include "models/backend/cpu/packed_weights.h"
#include "models/backend/model.h"
#include "models/graph/program_plan.h"

namespace syncopate {

// The order of a value's elements in memory. B is CpuKernels::block, the channels per block.
enum class Layout : std::uint8_t {
  kVector,       // a vector: [n, features]
  kInterleaved,  // a map in the order [n, H, W, C]
  kPlanar,       // a map in the order [n, C, H, W]
  kBlocked,      // blocked channels: [n, ceil(C / B), H, W, B]
};

// The shape and the layout of a value; a value is the output of a graph's node.
struct ValueType {
  Shape shape;  // the shape of one sample: [H, W, C] or [F]
  Layout layout = Layout::kVector;
  std::int64_t channels() const { return shape.back(); }
  std::int64_t pixels() const { return shape.size() == 3 ? shape[0] * shape[1] : 1; }
};
// Returns the number of f32 elements of one sample, including the padding of blocked channels.
std::int64_t elements_per_sample(const ValueType& type, int block);

// What the groups of one lane need to be built. All references outlive the groups.
struct GroupContext {
  const OneDnn& onednn;
  const Graph& graph;
  const CpuKernels& kernels;
  PackedWeights& packed;
  ParameterArena& arena;
  StateBlock& state;
  Mode mode;
  bool winograd;
  std::int64_t n;  // the number of samples of this lane
  int lane;
  int lanes;
  float* gradients;  // [arena total], the parameter gradients of this lane

  // Returns the shape of this lane's samples of a value; `type` has blocked channels.
  BlockedShape blocked(const ValueType& type) const {
    return {n, (type.channels() + kernels.block - 1) / kernels.block, type.pixels()};
  }
};

// The addresses of a fused group's inputs, output, gradients and scratch memory. They are computed
// from the offsets in GroupPlacement (program_plan.h).
struct GroupMemory {
  std::vector<float*> inputs;
  float* output = nullptr;
  // The gradients of the group's output, which the group may overwrite: one, or two if the group
  // adds them itself (GroupNeeds::takes_two_gradients).
  std::vector<float*> output_gradients;
  std::vector<float*> input_gradients;  // null for an input without a gradient
  std::byte* saved = nullptr;
  std::byte* forward_scratch = nullptr;
  std::byte* backward_scratch = nullptr;
};

// The arguments and results of one lane in one step.
struct LaneStep {
  LanePool& lanes;
  std::vector<const std::byte*> inputs;  // this lane's samples, as in Batch::inputs
  std::span<const std::byte> target;     // the targets of this lane's samples, as in Batch::target
  // Keys of this lane's samples, as in Batch::keys; null: none.
  const std::uint64_t* keys = nullptr;
  std::int64_t loss_divisor = 1;
  // Receives the gradient of the differentiated input for this lane's samples; null: no input is
  // differentiated.
  float* input_gradient = nullptr;
  double loss = 0.0;    // the sum of the lane's losses, written by the loss group
  double metric = 0.0;  // the sum of the samples' main metric, written by the loss group
};

class Group {
 public:
  virtual ~Group() = default;
  virtual GroupNeeds needs() const = 0;
  virtual void bind(const GroupMemory& memory) = 0;
  virtual void forward(LaneStep& step) = 0;
  // Runs the backward pass of the group: overwrites the gradients of its inputs and parameters.
  virtual void backward(LaneStep& step) = 0;
};

// The sums that lanes exchange in one pass of a batch norm. Forward and backward pass have separate
// objects, so that a fast lane does not overwrite sums that another lane still reads.
struct BatchNormSums {
  BatchNormSums(int lanes, std::int64_t channels, StatisticsReducer* reducer);

  double* of_lane(int lane) {
    return slots.data() + static_cast<std::size_t>(lane) * static_cast<std::size_t>(width);
  }
  // Returns the sums of all lanes, added in lane order and then over the replicas. The result is
  // equal on every lane. Every lane calls total() after writing its own sums to of_lane(lane).
  // Throws PeerError.
  std::span<const double> total(LanePool& lanes, int lane);

  // The number of doubles that each lane has in `slots`: 2 * channels sums, then the number of
  // values per channel.
  std::int64_t width;
  std::vector<double> slots;
  std::vector<double> totals;
  StatisticsReducer* reducer;
};

// The sums of one batch norm, which all lanes share.
struct BatchNormShared {
  BatchNormShared(int lanes, std::int64_t channels, StatisticsReducer* reducer)
      : forward(lanes, channels, reducer), backward(lanes, channels, reducer) {}
  BatchNormSums forward;
  BatchNormSums backward;
};

// What make_group() needs to know about a group: its place in the program of a lane.
struct GroupSite : GroupContext {
  const FusedGroup& group;
  std::vector<ValueType> inputs;  // types of the values that the group reads
  ValueType output;
  bool wants_input_gradient = false;  // whether the gradient of the first input is computed
  BatchNormShared* shared = nullptr;  // the sums of a batch norm; null for other groups

  const ValueType& input() const { return inputs[0]; }
  const Node& node() const { return graph.nodes[static_cast<std::size_t>(group.main)]; }
  std::int64_t output_elements() const { return n * elements_per_sample(output, kernels.block); }
  ChannelRows output_rows() const {
    return {n, output.pixels(), output.channels(), output.layout == Layout::kBlocked};
  }
};

// A base class of groups that stores the group's place in the program (GroupSite) and its memory. A
// derived class that needs memory overrides needs().
class PlainGroup : public Group {
 public:
  explicit PlainGroup(const GroupSite& site)
      : context_(site), group_(site.group), node_(site.node()) {
    for (const int parameter : node_.parameters) {
      values_.push_back(site.arena.value(static_cast<std::size_t>(parameter)).f32().data());
    }
  }
  GroupNeeds needs() const override { return {}; }
  void bind(const GroupMemory& memory) override { memory_ = memory; }

 protected:
  const GroupContext& context() const { return context_; }
  const CpuKernels& kernels() const { return context_.kernels; }
  const FusedGroup& group() const { return group_; }
  const Node& node() const { return node_; }
  const GroupMemory& memory() const { return memory_; }
  // x(k) returns input k, y() the output, dy() the first gradient of the output, and dx(k) the
  // gradient of input k. dx(k) is null if this gradient is not computed.
  const float* x(std::size_t k = 0) const { return memory_.inputs[k]; }
  float* y() const { return memory_.output; }
  float* dy() const { return memory_.output_gradients[0]; }
  float* dx(std::size_t k = 0) const { return memory_.input_gradients[k]; }
  bool trains() const { return context_.mode == Mode::kTrain; }
  // value(k) returns the values of the node's parameter k. gradient(k) returns the address to which
  // this lane writes the gradient of parameter k.
  const float* value(std::size_t k) const { return values_[k]; }
  float* gradient(std::size_t k) const {
    const auto parameter = static_cast<std::size_t>(node_.parameters[k]);
    return context_.gradients + context_.arena.layout().offset(parameter);
  }

 private:
  const GroupContext context_;
  const FusedGroup& group_;
  const Node& node_;
  std::vector<const float*> values_;  // values of the node's parameters
  GroupMemory memory_;
};

// A group that calls one kernel in each pass: forward_kernel(x, y, how...) and backward_kernel(dy,
// dx, how...).
template <typename... How>
class KernelGroup final : public PlainGroup {
 public:
  using Kernel = void (*)(const float* from, float* into, How... how);
  KernelGroup(const GroupSite& site, Kernel forward_kernel, Kernel backward_kernel,
              const std::decay_t<How>&... how)
      : PlainGroup(site), forward_(forward_kernel), backward_(backward_kernel), how_(how...) {}
  void forward(LaneStep& /*step*/) override { run(forward_, x(), y()); }
  void backward(LaneStep& /*step*/) override {
    if (dx() != nullptr) run(backward_, dy(), dx());
  }

 private:
  void run(Kernel kernel, const float* from, float* into) const {
    std::apply([&](const auto&... how) { kernel(from, into, how...); }, how_);
  }

  const Kernel forward_;
  const Kernel backward_;
  const std::tuple<std::decay_t<How>...> how_;
};

template <typename... How>
std::unique_ptr<Group> make_kernel_group(const GroupSite& site,
                                         void (*forward)(const float* x, float* y, How... how),
                                         void (*backward)(const float* dy, float* dx, How... how),
                                         const std::type_identity_t<std::decay_t<How>>&... how) {
  return std::make_unique<KernelGroup<How...>>(site, forward, backward, how...);
}

// Make the group with the main operation `op`. Each overload is in the file of the group's class;
// if an operation has no overload, the backend does not compile. Throw UnavailableError,
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
// Makes the group of a loss that has numbers as targets.
std::unique_ptr<Group> make_number_loss_group(const GroupSite& site, LossKind kind);

}  // namespace syncopate
