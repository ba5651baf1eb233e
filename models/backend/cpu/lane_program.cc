#include "models/backend/cpu/lane_program.h"

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// groups[i] such that groups[i].output == value.
std::size_t producer_of(const std::vector<FusedGroup>& groups, NodeId value) {
  const auto found = std::ranges::find(groups, value, &FusedGroup::output);
  check(found != groups.end(), "every value that is read is some group's output");
  return static_cast<std::size_t>(found - groups.begin());
}

// Consumers of group i's output: (group, which of its inputs).
std::vector<std::pair<std::size_t, std::size_t>> consumers_of(const std::vector<FusedGroup>& groups,
                                                              std::size_t i) {
  std::vector<std::pair<std::size_t, std::size_t>> consumers;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    for (std::size_t k = 0; k < groups[c].inputs.size(); ++k) {
      if (groups[c].inputs[k] == groups[i].output) consumers.emplace_back(c, k);
    }
  }
  return consumers;
}

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
      type.layout = groups[i].kind == GroupKind::kInput
                        ? layout_of_samples(groups, i, type.shape[2])
                        : Layout::kBlocked;
    }
    types.push_back(std::move(type));
  }
  return types;
}

// Builds the groups, then places what they need, then binds them.
class LaneProgram::Planner {
 public:
  Planner(const GroupContext& context, const std::vector<FusedGroup>& groups,
          const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms, LaneProgram& program)
      : context_(context),
        groups_(groups),
        batch_norms_(batch_norms),
        program_(program),
        types_(choose_layouts(context.graph, groups)),
        placements_(groups.size()) {}

  void build() {
    for (std::size_t i = 0; i < groups_.size(); ++i) program_.groups_.push_back(make_group(i));
    for (std::size_t i = 0; i < groups_.size(); ++i) place_group(i);
    // Going back: where a gradient is written in place, its memory is already known.
    for (std::size_t i = groups_.size(); i-- > 0;) place_gradients(i);
    const MemoryPlan plan = plan_memory(lifetimes_);
    program_.workspace_ =
        make_host_tensor({static_cast<std::int64_t>(plan.total_bytes)}, DType::kU8);
    program_.sums_before_backward_.resize(groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) bind_group(i, plan);
    const std::size_t logits = producer_of(groups_, groups_.back().inputs[0]);
    program_.logits_ = {memory_at(plan, placements_[logits].output),
                        static_cast<std::size_t>(context_.n * types_[logits].channels())};
  }

 private:
  using BufferId = int;
  static constexpr BufferId kNone = -1;

  struct Placement {
    BufferId output = kNone;
    BufferId saved = kNone;
    BufferId forward_scratch = kNone;
    BufferId backward_scratch = kNone;
    std::vector<BufferId> input_gradients;
  };

  bool trains() const { return context_.mode == Mode::kTrain; }
  int forward_time(std::size_t i) const { return static_cast<int>(i); }
  int backward_time(std::size_t i) const { return static_cast<int>(2 * groups_.size() - i); }
  int end_time() const { return static_cast<int>(2 * groups_.size()) + 1; }

  // Samples have no gradient.
  bool wants_gradient(NodeId value) const {
    return trains() && groups_[producer_of(groups_, value)].kind != GroupKind::kInput;
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
      case GroupKind::kConvReluPool:
        return make_conv_pool_group(context_, group, input, output);
      case GroupKind::kBatchNorm:
        return make_batch_norm_group(context_, group, output, *batch_norms_[i]);
      case GroupKind::kRelu:
        return make_relu_group(context_, output);
      case GroupKind::kAdd:
        return make_add_group(context_, output);
      case GroupKind::kMaxPool:
        return make_max_pool_group(context_, group, input, output);
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
    check(false, "every kind of group is lowered");
    return nullptr;
  }

  BufferId add_buffer(std::size_t size_bytes, int first, int last) {
    if (size_bytes == 0) return kNone;
    lifetimes_.push_back({size_bytes, first, last});
    return static_cast<BufferId>(lifetimes_.size()) - 1;
  }

  std::size_t value_bytes(std::size_t i) const {
    return static_cast<std::size_t>(context_.n *
                                    elements_per_sample(types_[i], context_.kernels.block)) *
           sizeof(float);
  }

  void place_group(std::size_t i) {
    Placement& placement = placements_[i];
    const GroupNeeds needs = program_.groups_[i]->needs();
    if (groups_[i].kind != GroupKind::kLoss) {
      int last = forward_time(i);
      for (const auto& [c, k] : consumers_of(groups_, i)) {
        last = std::max(last, forward_time(c));
        if (k == 0 && program_.groups_[c]->needs().input_in_backward)
          last = std::max(last, backward_time(c));
        if (groups_[c].kind == GroupKind::kLoss) last = end_time();
      }
      if (needs.output_in_backward) last = std::max(last, backward_time(i));
      placement.output = add_buffer(value_bytes(i), forward_time(i), last);
    }
    placement.saved = add_buffer(needs.saved, forward_time(i), backward_time(i));
    placement.forward_scratch = add_buffer(needs.forward_scratch, forward_time(i), forward_time(i));
    placement.backward_scratch =
        add_buffer(needs.backward_scratch, backward_time(i), backward_time(i));
  }

  void place_gradients(std::size_t i) {
    const int in_place = program_.groups_[i]->needs().gradient_in_place;
    for (std::size_t k = 0; k < groups_[i].inputs.size(); ++k) {
      BufferId gradient = kNone;
      if (wants_gradient(groups_[i].inputs[k])) {
        const std::size_t producer = producer_of(groups_, groups_[i].inputs[k]);
        const BufferId shared = static_cast<int>(k) == in_place ? first_gradient_of(i) : kNone;
        if (shared == kNone) {
          gradient = add_buffer(value_bytes(producer), backward_time(i), backward_time(producer));
        } else {
          gradient = shared;
          lifetimes_[static_cast<std::size_t>(shared)].last = backward_time(producer);
        }
      }
      placements_[i].input_gradients.push_back(gradient);
    }
  }

  BufferId first_gradient_of(std::size_t i) const {
    const auto consumers = consumers_of(groups_, i);
    if (consumers.empty()) return kNone;
    return placements_[consumers.front().first].input_gradients.at(consumers.front().second);
  }

  float* memory_at(const MemoryPlan& plan, BufferId buffer) const {
    return reinterpret_cast<float*>(bytes_at(plan, buffer));
  }
  std::byte* bytes_at(const MemoryPlan& plan, BufferId buffer) const {
    if (buffer == kNone) return nullptr;
    return program_.workspace_.bytes().data() + plan.offsets[static_cast<std::size_t>(buffer)];
  }

  void bind_group(std::size_t i, const MemoryPlan& plan) {
    GroupMemory memory;
    for (const NodeId input : groups_[i].inputs) {
      memory.inputs.push_back(memory_at(plan, placements_[producer_of(groups_, input)].output));
    }
    memory.output = memory_at(plan, placements_[i].output);
    memory.saved = bytes_at(plan, placements_[i].saved);
    memory.forward_scratch = bytes_at(plan, placements_[i].forward_scratch);
    memory.backward_scratch = bytes_at(plan, placements_[i].backward_scratch);
    for (const BufferId gradient : placements_[i].input_gradients) {
      memory.input_gradients.push_back(memory_at(plan, gradient));
    }
    if (trains() && groups_[i].kind != GroupKind::kLoss && groups_[i].kind != GroupKind::kInput) {
      std::vector<float*> gradients;
      for (const auto& [c, k] : consumers_of(groups_, i)) {
        gradients.push_back(memory_at(plan, placements_[c].input_gradients[k]));
      }
      if (gradients.empty()) {
        throw ShapeError("network " + context_.graph.name +
                         ": the output of a node is read by nobody");
      }
      const std::size_t keep = program_.groups_[i]->needs().takes_two_gradients ? 2 : 1;
      const std::int64_t count =
          context_.n * elements_per_sample(types_[i], context_.kernels.block);
      for (std::size_t extra = keep; extra < gradients.size(); ++extra) {
        program_.sums_before_backward_[i].push_back({gradients[0], gradients[extra], count});
      }
      gradients.resize(std::min(keep, gradients.size()));
      memory.output_gradients = std::move(gradients);
    }
    program_.groups_[i]->bind(memory);
  }

  const GroupContext& context_;
  const std::vector<FusedGroup>& groups_;
  const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms_;
  LaneProgram& program_;
  std::vector<ValueType> types_;
  std::vector<Placement> placements_;
  std::vector<BufferLifetime> lifetimes_;
};

LaneProgram::LaneProgram(const GroupContext& context, const std::vector<FusedGroup>& groups,
                         const std::vector<std::unique_ptr<BatchNormShared>>& batch_norms)
    : kernels_(context.kernels) {
  Planner(context, groups, batch_norms, *this).build();
}

void LaneProgram::backward(std::size_t group, LaneStep& step) {
  for (const GradientSum& sum : sums_before_backward_[group])
    kernels_.add(sum.into, sum.from, sum.into, sum.count);
  groups_[group]->backward(step);
}

}  // namespace syncopate
