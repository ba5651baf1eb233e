#include "models/backend/cpu/lane_program.h"

#include <algorithm>
#include <utility>

namespace syncopate {
namespace {

// Returns the layout of the samples that group i, the graph's input, stores: all groups which read
// the samples support it.
Layout layout_of_samples(const Graph& graph, const std::vector<FusedGroup>& groups, std::size_t i,
                         std::int64_t channels) {
  bool all_planar = channels <= 3;
  bool all_interleaved = true;
  for (const auto& [c, k] : consumers_of(groups, i)) {
    const FusedGroup& reader = groups[c];
    all_planar = all_planar && has_main<Conv2dOp>(graph, reader) && !reader.pool;
    all_interleaved = all_interleaved && (reader.pool || has_main<FlattenOp>(graph, reader));
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
      const bool are_samples = has_main<InputOp>(graph, groups[i]) && !groups[i].is_differentiated;
      type.layout =
          are_samples ? layout_of_samples(graph, groups, i, type.shape[2]) : Layout::kBlocked;
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
      program_.groups_.push_back(make(i));
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

  std::unique_ptr<Group> make(std::size_t i) const {
    const FusedGroup& group = groups_[i];
    GroupSite site{context_, group};
    for (const NodeId each : group.inputs) {
      site.inputs.push_back(types_[producer_of(groups_, each)]);
    }
    site.output = types_[i];
    site.wants_input_gradient = !group.inputs.empty() && wants_gradient(group.inputs[0]);
    site.shared = batch_norms_[i].get();
    return std::visit([&](const auto& op) { return make_group(site, op); }, site.node().operation);
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
