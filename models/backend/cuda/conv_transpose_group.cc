// Lowers conv_transpose2d (+ bias) (+ ReLU) to the passes of the convolution of its output to its
// input: the forward pass is that convolution's input gradient.
#include <algorithm>

#include "models/backend/cuda/even_padding.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

// The convolution whose input gradient is the forward pass.
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
class ConvTransposeGroup final : public PlainGroup {
 public:
  ConvTransposeGroup(const GroupContext& context, const FusedGroup& group)
      : PlainGroup(context, group),
        has_bias_(std::get<ConvTranspose2dOp>(main().operation).bias),
        shape_(shape_of(context, group)) {
    if (context.n == 0) return;
    const auto plan = [&](ConvPass pass) { return plan_convolution(context, pass, shape_); };
    forward_ = plan(ConvPass::kInputGradient);
    if (!context.trains()) return;
    weight_gradient_ = plan(ConvPass::kWeightGradient);
    const bool has_input_gradient =
        !std::holds_alternative<InputOp>(context.node(group.inputs[0]).operation);
    if (has_input_gradient) input_gradient_ = plan(ConvPass::kForward);
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.forward_scratch = workspace_of(forward_);
    if (!context().trains()) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group().relu;
    const std::size_t weights = kIsF32 ? 0 : aligned(weight_bytes());
    needs.backward_scratch =
        std::max({weights + workspace_of(weight_gradient_), workspace_of(input_gradient_),
                  static_cast<std::size_t>(bias_gradient_scratch(rows(), channels()))});
    return needs;
  }

  void forward(const Step& /*step*/) override {
    if (context().n == 0) return;
    const GroupMemory& m = memory();
    T* const y = static_cast<T*>(m.output);
    forward_->run({.x = y, .w = weight(), .y = m.inputs[0], .workspace = m.forward_scratch});
    if (has_bias_) {
      add_bias(y, variables().value(main().parameters[1]), rows(), channels(), group().relu,
               stream());
    } else if (group().relu) {
      relu_forward(y, y, output_elements(), stream());
    }
  }

  void backward(const Step& /*step*/) override {
    if (context().n == 0) return;
    const GroupMemory& m = memory();
    T* const dy = static_cast<T*>(m.output_gradients[0]);
    if (group().relu) {
      relu_backward(static_cast<const T*>(m.output), dy, dy, output_elements(), stream());
    }
    if (has_bias_) {
      bias_gradient(dy, variables().gradient(main().parameters[1]), rows(), channels(),
                    m.backward_scratch, stream());
    }
    float* const dw = variables().gradient(main().parameters[0]);
    if constexpr (kIsF32) {
      weight_gradient_->run({.x = dy, .w = dw, .y = m.inputs[0], .workspace = m.backward_scratch});
    } else {
      weight_gradient_->run({.x = dy,
                             .w = m.backward_scratch,
                             .y = m.inputs[0],
                             .workspace = behind(m.backward_scratch, weight_bytes())});
      convert(static_cast<const T*>(m.backward_scratch), dw, shape_.weight_elements(), stream());
    }
    if (!wants_input_gradient()) return;
    input_gradient_->run(
        {.x = dy, .w = weight(), .y = m.input_gradients[0], .workspace = m.backward_scratch});
  }

 private:
  static constexpr bool kIsF32 = std::is_same_v<T, float>;

  static std::size_t workspace_of(const std::unique_ptr<Convolution>& convolution) {
    return convolution == nullptr ? 0 : convolution->workspace_bytes();
  }
  std::int64_t rows() const { return context().n * out()[0] * out()[1]; }
  int channels() const { return static_cast<int>(out()[2]); }
  std::size_t weight_bytes() const {
    return static_cast<std::size_t>(shape_.weight_elements()) * sizeof(T);
  }
  // cuDNN takes read-only arrays as pointers to mutable memory.
  void* weight() const { return const_cast<void*>(variables().weight(main().parameters[0])); }

  const bool has_bias_;
  const ConvShape shape_;
  std::unique_ptr<Convolution> forward_;
  std::unique_ptr<Convolution> weight_gradient_;
  std::unique_ptr<Convolution> input_gradient_;
};

}  // namespace

std::unique_ptr<Group> make_conv_transpose_group(const GroupContext& context,
                                                 const FusedGroup& group) {
  return with_type(context.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<ConvTransposeGroup<T>>(context, group);
  });
}

}  // namespace syncopate::cuda
