// Lowers conv_transpose2d (+ bias) (+ ReLU) to the passes of the convolution of its output to its
// input: the forward pass is that convolution's input gradient.
#include "models/backend/cuda/convolution_group.h"

namespace syncopate::cuda {
namespace {

// The convolution that has the forward pass as its input gradient.
ConvShape shape_of(const GroupContext& context, const FusedGroup& group) {
  const Node& node = context.node(group.main);
  const auto& op = std::get<ConvTranspose2dOp>(node.operation);
  return {.n = context.n,
          .height = node.shape[0],
          .width = node.shape[1],
          .channels = node.shape[2],
          .out_channels = context.node(group.inputs[0]).shape[2],
          .kernel_h = op.kernel_h,
          .kernel_w = op.kernel_w,
          .stride = op.stride,
          .pad = op.pad,
          .type = context.precision};
}

template <typename T>
class ConvTransposeGroup final : public ConvolutionGroup<T> {
 public:
  ConvTransposeGroup(const GroupContext& context, const FusedGroup& group)
      : ConvolutionGroup<T>(context, group, shape_of(context, group),
                            std::get<ConvTranspose2dOp>(context.node(group.main).operation).bias) {
    if (context.n == 0) return;
    this->forward_ = this->plan(ConvPass::kInputGradient);
    if (!context.trains()) return;
    this->weight_gradient_ = this->plan(ConvPass::kWeightGradient);
    const bool has_input_gradient =
        !std::holds_alternative<InputOp>(context.node(group.inputs[0]).operation);
    if (has_input_gradient) this->input_gradient_ = this->plan(ConvPass::kForward);
  }

  void forward(const Step& /*step*/) override {
    if (this->context().n == 0) return;
    const GroupMemory& m = this->memory();
    this->forward_->run(
        {.x = m.output, .w = this->weight(), .y = m.inputs[0], .workspace = m.forward_scratch});
    this->add_bias_and_relu();
  }

  void backward(const Step& /*step*/) override {
    if (this->context().n == 0) return;
    const GroupMemory& m = this->memory();
    T* const dy = this->start_backward();
    this->compute_weight_gradient(dy, m.inputs[0], [&](const T* written, float* dw) {
      convert(written, dw, this->shape().weight_elements(), this->stream());
    });
    if (!this->wants_input_gradient()) return;
    this->input_gradient_->run(
        {.x = dy, .w = this->weight(), .y = m.input_gradients[0], .workspace = m.backward_scratch});
  }
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const ConvTranspose2dOp& /*op*/) {
  return make_typed<ConvTransposeGroup>(site);
}

}  // namespace syncopate::cuda
