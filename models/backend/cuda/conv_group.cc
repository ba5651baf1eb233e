// Lowers conv2d (+ bias) (+ ReLU) to three convolutions of the library and our kernels for bias and
// ReLU. Where only a batch norm reads the output, and the library supports it, the convolution also
// writes the sums that the batch norm needs.
#include <algorithm>
#include <optional>

#include "models/backend/cuda/convolution_group.h"

namespace syncopate::cuda {
namespace {

bool from_samples(const GroupContext& context, const FusedGroup& group) {
  return std::holds_alternative<InputOp>(context.node(group.inputs[0]).operation);
}

std::optional<FoldShape> sample_fold_of(const GroupContext& context, const FusedGroup& group) {
  if (!from_samples(context, group)) return std::nullopt;
  return context.input_fold(group.inputs[0]);
}

ConvShape shape_of(const GroupContext& context, const FusedGroup& group) {
  const auto samples = sample_fold_of(context, group);
  return conv_shape(context.graph, context.node(group.main), context.n, context.precision,
                    samples ? &*samples : nullptr);
}

bool only_normalised(const Graph& graph, NodeId value) {
  std::int64_t readers = 0;
  std::int64_t batch_norms = 0;
  for (const Node& node : graph.nodes) {
    readers += std::ranges::count(node.inputs, value);
    if (!std::holds_alternative<BatchNormOp>(node.operation)) continue;
    batch_norms += std::ranges::count(node.inputs, value);
  }
  return readers == 1 && batch_norms == 1;
}

// Returns whether the convolution should also write its output's sums. cuDNN has no such
// convolution in bf16. In f32 a variance from sums of squares that are not taken around the mean is
// not accurate enough. On an H200 the sums of cuDNN 9.19 differ from run to run in their last bits,
// although cuDNN does not say that the results of this engine vary.
bool sums_output(const GroupContext& context, const FusedGroup& group) {
  const bool as_convolved =
      group.output == group.main && !std::get<Conv2dOp>(context.node(group.main).operation).bias;
  return context.trains() && context.precision == Precision::kF16 && !context.deterministic &&
         as_convolved && only_normalised(context.graph, group.output);
}

template <typename T>
class ConvGroup final : public ConvolutionGroup<T> {
 public:
  ConvGroup(const GroupContext& context, const FusedGroup& group, bool has_input_gradient)
      : ConvolutionGroup<T>(context, group, shape_of(context, group),
                            std::get<Conv2dOp>(context.node(group.main).operation).bias) {
    if (const auto samples = sample_fold_of(context, group)) {
      weight_fold_ = weight_fold(context.graph, context.node(group.main), *samples);
    }
    if (context.n == 0) return;
    if (sums_output(context, group)) this->forward_ = this->plan(ConvPass::kForwardWithSums);
    leaves_sums_ = this->forward_ != nullptr;  // null: no convolution that also sums is available
    if (!leaves_sums_) this->forward_ = this->plan(ConvPass::kForward);
    if (!context.trains()) return;
    this->weight_gradient_ = this->plan(ConvPass::kWeightGradient);
    if (has_input_gradient) this->input_gradient_ = this->plan(ConvPass::kInputGradient);
  }

  GroupNeeds needs() const override {
    GroupNeeds needs = ConvolutionGroup<T>::needs();
    // The scratch memory begins with the folded weights; cuDNN's workspace follows them.
    if (weight_fold_) needs.forward_scratch += aligned(this->weight_bytes());
    if (leaves_sums_) needs.output_sums = output_sums_bytes(this->channels());
    return needs;
  }

  void forward(const Step& /*step*/) override {
    if (this->context().n == 0) return;
    const GroupMemory& m = this->memory();
    const OutputSums sums = output_sums_at(m.output_sums, this->channels());
    ConvArrays arrays{.x = m.inputs[0],
                      .w = this->weight(),
                      .y = m.output,
                      .sums = sums.sums,
                      .squares = sums.squares,
                      .workspace = m.forward_scratch};
    if (weight_fold_) {
      T* const folded = static_cast<T*>(m.forward_scratch);
      fold(*weight_fold_, static_cast<const T*>(this->weight()), folded, this->stream());
      arrays.w = folded;
      arrays.workspace = behind(folded, this->weight_bytes());
    }
    this->forward_->run(arrays);
    this->add_bias_and_relu();
  }

  void backward(const Step& /*step*/) override {
    if (this->context().n == 0) return;
    const GroupMemory& m = this->memory();
    T* const dy = this->start_backward();
    this->compute_weight_gradient(m.inputs[0], dy, [&](const T* written, float* dw) {
      if (weight_fold_) {
        unfold(*weight_fold_, written, dw, this->stream());
      } else {
        convert(written, dw, this->shape().weight_elements(), this->stream());
      }
    });
    if (!this->wants_input_gradient()) return;
    this->input_gradient_->run(
        {.x = m.input_gradients[0], .w = this->weight(), .y = dy, .workspace = m.backward_scratch});
  }

 private:
  bool leaves_sums_ = false;
  std::optional<FoldShape> weight_fold_;  // if the convolution reads folded samples
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const Conv2dOp& /*op*/) {
  return make_typed<ConvGroup>(site, !from_samples(site, site.group));
}

}  // namespace syncopate::cuda
