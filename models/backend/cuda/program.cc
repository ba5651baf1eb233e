#include "models/backend/cuda/program.h"

#include <algorithm>

#include "models/backend/cuda/device.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

bool reads_samples(const GroupContext& context, const FusedGroup& group) {
  return std::ranges::any_of(group.inputs, [&](NodeId input) {
    return std::holds_alternative<InputOp>(context.node(input).operation);
  });
}

GroupContext with_folded_inputs(GroupContext context, const std::vector<FusedGroup>& groups) {
  context.folds_inputs = std::ranges::all_of(groups, [&](const FusedGroup& group) {
    const bool flattens = has_main<InputOp>(context.graph, group) && group.output != group.main;
    if (flattens || !reads_samples(context, group)) return !flattens;
    const auto* conv = std::get_if<Conv2dOp>(&context.node(group.main).operation);
    return conv != nullptr && conv->groups == 1;
  });
  return context;
}

}  // namespace

Program::Program(const GroupContext& given, const std::vector<FusedGroup>& groups)
    : context_(with_folded_inputs(given, groups)),
      sums_before_backward_(groups.size()),
      backward_(groups.size() + 1) {
  const GroupContext& context = context_;
  std::vector<GroupNeeds> needs;
  std::vector<std::size_t> value_bytes;
  const auto elements_of = [&](std::size_t i) {
    const Node& output = context.node(groups[i].output);
    const bool are_samples = std::holds_alternative<InputOp>(output.operation);
    if (const auto fold = are_samples ? context.input_fold(groups[i].output) : std::nullopt) {
      return fold->n * fold->y_height * fold->y_width * fold->y_channels;
    }
    return context.n * num_elements(output.shape);
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const GroupSite site{context, groups[i]};
    groups_.push_back(std::visit([&](const auto& op) { return make_group(site, op); },
                                 context.node(groups[i].main).operation));
    needs.push_back(groups_.back()->needs());
    value_bytes.push_back(static_cast<std::size_t>(elements_of(i)) *
                          element_bytes(context.precision));
  }
  const ProgramPlan plan = plan_program(groups, needs, value_bytes, context.trains());
  block_ = make_device_buffer(plan.total_bytes, context.device);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const GroupPlacement& placement = plan.groups[i];
    for (const auto& [into, from] : placement.sums) {
      sums_before_backward_[i].push_back({at(into), at(from), elements_of(i)});
    }
    groups_[i]->bind({.inputs = at(placement.inputs),
                      .input_sums = at(placement.input_sums),
                      .output = at(placement.output),
                      .output_sums = at(placement.output_sums),
                      .output_gradients = at(placement.output_gradients),
                      .input_gradients = at(placement.input_gradients),
                      .saved = at(placement.saved),
                      .forward_scratch = at(placement.forward_scratch),
                      .backward_scratch = at(placement.backward_scratch)});
  }
  logits_ = at(plan.logits);
}

void* Program::at(GroupPlacement::Offset offset) const {
  return offset ? block_->data() + *offset : nullptr;
}

std::vector<void*> Program::at(const std::vector<GroupPlacement::Offset>& offsets) const {
  std::vector<void*> memories;
  for (const GroupPlacement::Offset& offset : offsets) memories.push_back(at(offset));
  return memories;
}

void Program::backward(std::size_t group, const Step& step) {
  for (const GradientSum& sum : sums_before_backward_[group]) {
    with_type(context_.precision, [&]<typename T>() {
      add(static_cast<const T*>(sum.into), static_cast<const T*>(sum.from),
          static_cast<T*>(sum.into), sum.count, context_.stream);
    });
  }
  groups_[group]->backward(step);
}

void Program::forward_all(const Step& step) {
  if (step != captured_) {
    forward_.forget();
    for (CapturedWork& segment : backward_) segment.forget();
    captured_ = step;
  }
  const auto work = [&] {
    for (std::size_t i = 0; i < groups_.size(); ++i) forward(i, step);
  };
  if (context_.captures) return forward_.run(context_.stream, work);
  work();
}

void Program::backward_segment(std::size_t begin, std::size_t end, const Step& step) {
  check(step == captured_, "backward follows its forward");
  const auto work = [&] {
    for (std::size_t i = end; i-- > begin;) backward(i, step);
  };
  if (context_.captures) return backward_[end].run(context_.stream, work);
  work();
}

}  // namespace syncopate::cuda
