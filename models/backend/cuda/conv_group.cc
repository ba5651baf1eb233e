// Lowers conv2d (+ bias) (+ ReLU) to three convolutions of the library and our kernels for bias and
// ReLU. Where only a batch norm reads the output, and the library supports it, the convolution also
// writes the sums that the batch norm needs.
#include <algorithm>

#include "models/backend/cuda/even_padding.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

bool from_samples(const GroupContext& context, const FusedGroup& group) {
  return std::holds_alternative<InputOp>(context.node(group.inputs[0]).operation);
}

ConvShape shape_of(const GroupContext& context, const FusedGroup& group) {
  const Node& node = context.node(group.main);
  const auto& op = std::get<Conv2dOp>(node.operation);
  const Shape& in = context.node(group.inputs[0]).shape;
  return {.n = context.n,
          .height = in[0],
          .width = in[1],
          .channels = from_samples(context, group)
                          ? context.input_channels(context.node(group.inputs[0]))
                          : in[2],
          .out_channels = node.shape[2],
          .kernel_h = op.kernel_h,
          .kernel_w = op.kernel_w,
          .stride = op.stride,
          .pad = op.pad,
          .type = context.precision,
          .groups = op.groups};
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
// although cuDNN does not list the engine as one whose results vary.
bool sums_output(const GroupContext& context, const FusedGroup& group) {
  const bool as_convolved =
      group.output == group.main && !std::get<Conv2dOp>(context.node(group.main).operation).bias;
  return context.trains() && context.precision == Precision::kF16 && !context.deterministic &&
         as_convolved && only_normalised(context.graph, group.output);
}

template <typename T>
class ConvGroup final : public PlainGroup {
 public:
  ConvGroup(const GroupContext& context, const FusedGroup& group, bool has_input_gradient)
      : PlainGroup(context, group),
        op_(std::get<Conv2dOp>(context.node(group.main).operation)),
        shape_(shape_of(context, group)) {
    if (context.n == 0) return;
    if (sums_output(context, group)) forward_ = plan(ConvPass::kForwardWithSums);
    leaves_sums_ = forward_ != nullptr;  // null: no convolution that also sums is available
    if (!leaves_sums_) forward_ = plan(ConvPass::kForward);
    if (!context.trains()) return;
    weight_gradient_ = plan(ConvPass::kWeightGradient);
    if (has_input_gradient) input_gradient_ = plan(ConvPass::kInputGradient);
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    // The scratch memory begins with the padded weights; cuDNN's workspace follows them.
    needs.forward_scratch = (pads() ? aligned(weight_bytes()) : 0) + workspace_of(forward_);
    if (leaves_sums_) needs.output_sums = output_sums_bytes(channels());
    if (!context().trains()) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group().relu;
    // The gradients of a convolution are computed one after the other in one block of scratch,
    // sized for the largest: the weights' (16-bit gradient, workspace), the input's, the bias's.
    const std::size_t weights = kIsF32 ? 0 : aligned(weight_bytes());
    needs.backward_scratch =
        std::max({weights + workspace_of(weight_gradient_), workspace_of(input_gradient_),
                  static_cast<std::size_t>(bias_gradient_scratch(rows(), channels()))});
    return needs;
  }

  void forward(const Step& /*step*/) override {
    if (context().n == 0) return;
    const GroupMemory& m = memory();
    const OutputSums sums = output_sums_at(m.output_sums, channels());
    ConvArrays arrays{.x = m.inputs[0],
                      .w = weight(),
                      .y = m.output,
                      .sums = sums.sums,
                      .squares = sums.squares,
                      .workspace = m.forward_scratch};
    if (pads()) {
      T* const padded = static_cast<T*>(m.forward_scratch);
      with_channels(static_cast<const T*>(weight()), own_channels(), padded,
                    static_cast<int>(shape_.channels), weight_rows(), stream());
      arrays.w = padded;
      arrays.workspace = behind(padded, weight_bytes());
    }
    forward_->run(arrays);
    T* const y = static_cast<T*>(m.output);
    if (op_.bias) {
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
    if (op_.bias) {
      bias_gradient(dy, variables().gradient(main().parameters[1]), rows(), channels(),
                    m.backward_scratch, stream());
    }
    float* const dw = variables().gradient(main().parameters[0]);
    if constexpr (kIsF32) {
      weight_gradient_->run({.x = m.inputs[0], .w = dw, .y = dy, .workspace = m.backward_scratch});
    } else {
      weight_gradient_->run({.x = m.inputs[0],
                             .w = m.backward_scratch,
                             .y = dy,
                             .workspace = behind(m.backward_scratch, weight_bytes())});
      const T* const written = static_cast<const T*>(m.backward_scratch);
      if (pads()) {
        with_channels(written, static_cast<int>(shape_.channels), dw, own_channels(), weight_rows(),
                      stream());
      } else {
        convert(written, dw, shape_.weight_elements(), stream());
      }
    }
    if (!wants_input_gradient()) return;
    input_gradient_->run(
        {.x = m.input_gradients[0], .w = weight(), .y = dy, .workspace = m.backward_scratch});
  }

 private:
  static constexpr bool kIsF32 = std::is_same_v<T, float>;

  std::unique_ptr<Convolution> plan(ConvPass pass) const {
    return plan_convolution(context(), pass, shape_);
  }
  static std::size_t workspace_of(const std::unique_ptr<Convolution>& convolution) {
    return convolution == nullptr ? 0 : convolution->workspace_bytes();
  }
  std::int64_t rows() const { return context().n * out()[0] * out()[1]; }
  int channels() const { return static_cast<int>(out()[2]); }
  // Returns the number of input channels without those that pad the samples.
  int own_channels() const { return static_cast<int>(in()[2]); }
  bool pads() const { return own_channels() != shape_.channels; }
  std::int64_t weight_rows() const {
    return shape_.out_channels * shape_.kernel_h * shape_.kernel_w;
  }
  // Returns the bytes of the weights as cuDNN sees them, padded channels included.
  std::size_t weight_bytes() const {
    return static_cast<std::size_t>(shape_.weight_elements()) * sizeof(T);
  }
  // The weights lose `const`, since cuDNN takes read-only arrays as pointers to mutable memory.
  void* weight() const { return const_cast<void*>(variables().weight(main().parameters[0])); }

  const Conv2dOp op_;
  const ConvShape shape_;
  std::unique_ptr<Convolution> forward_;
  bool leaves_sums_ = false;
  std::unique_ptr<Convolution> weight_gradient_;
  std::unique_ptr<Convolution> input_gradient_;
};

}  // namespace

std::unique_ptr<Group> make_conv_group(const GroupContext& context, const FusedGroup& group) {
  const bool has_input_gradient = !from_samples(context, group);
  return with_type(context.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<ConvGroup<T>>(context, group, has_input_gradient);
  });
}

}  // namespace syncopate::cuda
