#include "models/backend/cpu/lane_program.h"

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Returns the layout in which group i, the graph's input, stores the samples: one that all groups
// which read the samples support.
Layout layout_of_samples(const std::vector<FusedGroup>& groups, std::size_t i,
                         std::int64_t channels) {
  bool all_planar = channels <= 3;
  bool all_interleaved = true;
  for (const auto& [c, k] : consumers_of(groups, i)) {
    all_planar = all_planar && groups[c].kind == GroupKind::kConv;
    all_interleaved = all_interleaved && (groups[c].kind == GroupKind::kConvReluPool ||
                                          groups[c].kind == GroupKind::kFlatten);
  }
  if (all_interleaved) return Layout::kInterleaved;
  return all_planar ? Layout::kPlanar : Layout::kBlocked;
}

}  // namespace

std::int64_t elements_per_sample(const ValueType& type, int block) {
  if (type.layout != Layout::kBlocked) return num_elements(type.shape);
  return (type.channels() + block - 1) / block * block * type.pixels();
}

std::vector<ValueType> choose_layouts(const Graph& graph, const std::vector<FusedGroup>& groups) {
  std::vector<ValueType> types;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    ValueType type;
    type.shape = graph.nodes[static_cast<std::size_t>(groups[i].output)].shape;
    if (type.shape.size() == 3) {
      const bool are_samples = groups[i].kind == GroupKind::kInput && !groups[i].is_differentiated;
      type.layout = are_samples ? layout_of_samples(groups, i, type.shape[2]) : Layout::kBlocked;
    }
    types.push_back(std::move(type));
  }
  return types;
}

// A Builder makes the groups of a lane's program, plans their memory and binds them to it.
class LaneProgram::Builder {
 public:
  Builder(const GroupContext& context, const std::vector<FusedGroup>& groups,
          const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms, LaneProgram& program)
      : context_(context),
        groups_(groups),
        batch_norms_(batch_norms),
        program_(program),
        types_(choose_layouts(context.graph, groups)) {}

  void build() {
    std::vector<GroupNeeds> needs;
    std::vector<std::size_t> value_bytes;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      program_.groups_.push_back(make_group(i));
      needs.push_back(program_.groups_.back()->needs());
      value_bytes.push_back(static_cast<std::size_t>(value_elements(i)) * sizeof(float));
    }
    const ProgramPlan plan = plan_program(groups_, needs, value_bytes, trains());
    program_.workspace_ =
        make_host_tensor({static_cast<std::int64_t>(plan.total_bytes)}, DType::kU8);
    program_.sums_before_backward_.resize(groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) bind_group(i, plan.groups[i]);
    const std::size_t logits = producer_of(groups_, groups_.back().inputs[0]);
    program_.logits_ = memory_at(plan.logits);
    program_.logits_type_ = types_[logits];
  }

 private:
  bool trains() const { return context_.mode == Mode::kTrain; }
  bool wants_gradient(NodeId value) const { return trains() && has_gradient(groups_, value); }
  std::int64_t value_elements(std::size_t i) const {
    return context_.n * elements_per_sample(types_[i], context_.kernels.block);
  }

  std::vector<ValueType> inputs_of(const FusedGroup& group) const {
    std::vector<ValueType> inputs;
    for (const NodeId each : group.inputs) inputs.push_back(types_[producer_of(groups_, each)]);
    return inputs;
  }

  std::unique_ptr<Group> make_group(std::size_t i) const {
    const FusedGroup& group = groups_[i];
    const ValueType& output = types_[i];
    const ValueType& input =
        group.inputs.empty() ? output : types_[producer_of(groups_, group.inputs[0])];
    switch (group.kind) {
      case GroupKind::kInput:
        return make_input_group(context_, group, output);
      case GroupKind::kConv:
        return make_conv_group(context_, group, input, output, wants_gradient(group.inputs[0]));
      case GroupKind::kConvTranspose:
        return make_conv_transpose_group(context_, group, input, output,
                                         wants_gradient(group.inputs[0]));
      case GroupKind::kConvReluPool:
        return make_conv_pool_group(context_, group, input, output);
      case GroupKind::kBatchNorm:
        return make_batch_norm_group(context_, group, output, *batch_norms_[i]);
      case GroupKind::kLayerNorm:
        return make_layer_norm_group(context_, group, output);
      case GroupKind::kDropout:
        return make_dropout_group(context_, group, output);
      case GroupKind::kRelu:
        return make_relu_group(context_, output);
      case GroupKind::kActivation:
        return make_activation_group(context_, group, output);
      case GroupKind::kAdd:
        return make_add_group(context_, output);
      case GroupKind::kMultiply:
        return make_multiply_group(context_, inputs_of(group), output);
      case GroupKind::kConcat:
        return make_concat_group(context_, inputs_of(group), output);
      case GroupKind::kSlice:
        return make_slice_group(context_, group, input, output);
      case GroupKind::kUpsample:
        return make_upsample_group(context_, group, input);
      case GroupKind::kSoftmax:
        return make_softmax_group(context_, output);
      case GroupKind::kReshape:
        return make_reshape_group(context_, input, output);
      case GroupKind::kTranspose:
        return make_transpose_group(context_, group, input, output);
      case GroupKind::kReduceMean:
        return make_reduce_mean_group(context_, group, input, output);
      case GroupKind::kMatmul:
        return make_matmul_group(context_, inputs_of(group), output);
      case GroupKind::kMaxPool:
        return make_max_pool_group(context_, group, input, output);
      case GroupKind::kAveragePool:
        return make_average_pool_group(context_, group, input, output);
      case GroupKind::kGlobalAveragePool:
        return make_global_average_pool_group(context_, input);
      case GroupKind::kFlatten:
        return make_flatten_group(context_, input);
      case GroupKind::kDense:
        return make_dense_group(context_, group, input, output, wants_gradient(group.inputs[0]));
      case GroupKind::kShortcut:
        return make_shortcut_group(context_, group, input, output);
      case GroupKind::kLoss:
        return make_loss_group(context_, input);
    }
    check(false, "every kind of group has a maker");
    return nullptr;
  }

  std::byte* bytes_at(GroupPlacement::Offset offset) const {
    return offset ? program_.workspace_.bytes().data() + *offset : nullptr;
  }
  float* memory_at(GroupPlacement::Offset offset) const {
    return reinterpret_cast<float*>(bytes_at(offset));
  }
  std::vector<float*> memories_at(const std::vector<GroupPlacement::Offset>& offsets) const {
    std::vector<float*> memories;
    for (const GroupPlacement::Offset& offset : offsets) memories.push_back(memory_at(offset));
    return memories;
  }

  void bind_group(std::size_t i, const GroupPlacement& placement) {
    for (const auto& [into, from] : placement.sums) {
      program_.sums_before_backward_[i].push_back(
          {memory_at(into), memory_at(from), value_elements(i)});
    }
    program_.groups_[i]->bind({.inputs = memories_at(placement.inputs),
                               .output = memory_at(placement.output),
                               .output_gradients = memories_at(placement.output_gradients),
                               .input_gradients = memories_at(placement.input_gradients),
                               .saved = bytes_at(placement.saved),
                               .forward_scratch = bytes_at(placement.forward_scratch),
                               .backward_scratch = bytes_at(placement.backward_scratch)});
  }

  const GroupContext& context_;
  const std::vector<FusedGroup>& groups_;
  const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms_;
  LaneProgram& program_;
  std::vector<ValueType> types_;
};

LaneProgram::LaneProgram(const GroupContext& context, const std::vector<FusedGroup>& groups,
                         const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms)
    : kernels_(context.kernels), n_(context.n) {
  Builder(context, groups, batch_norms, *this).build();
}

float* LaneProgram::copy_logits(float* into) const {
  const std::int64_t classes = logits_type_.channels();
  const std::int64_t pixels = logits_type_.pixels();
  if (logits_type_.layout == Layout::kBlocked) {
    const std::int64_t blocks = (classes + kernels_.block - 1) / kernels_.block;
    kernels_.blocked_to_interleaved(logits_, into, {n_, blocks, pixels}, classes);
  } else {
    std::copy_n(logits_, n_ * classes, into);
  }
  return into + n_ * pixels * classes;
}

void LaneProgram::backward(std::size_t group, LaneStep& step) {
  for (const GradientSum& sum : sums_before_backward_[group])
    kernels_.add(sum.into, sum.from, sum.into, sum.count);
  groups_[group]->backward(step);
}

}  // namespace syncopate
