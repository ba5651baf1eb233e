// conv2d (+ bias) (+ ReLU) through oneDNN: activations blocked, weights in whatever format it likes
// best.
#include <algorithm>
#include <utility>

#include "models/backend/cpu/convolution.h"
#include "models/backend/cpu/groups.h"
#include "models/backend/cpu/onednn.h"

namespace syncopate {
namespace {

class ConvGroup final : public Group {
 public:
  ConvGroup(const GroupContext& context, const FusedGroup& group, const ValueType& input,
            const ValueType& output, bool wants_input_gradient)
      : context_(context),
        group_(group),
        node_(context.graph.nodes[static_cast<std::size_t>(group.main)]),
        op_(std::get<Conv2dOp>(node_.operation)),
        wants_input_gradient_(wants_input_gradient),
        output_elements_(context.n * elements_per_sample(output, context.kernels.block)) {
    if (context.n == 0) return;  // oneDNN falls to its reference code for empty batches
    convolution_ = {.problem = {.n = context.n,
                                .c = input.channels(),
                                .k = output.channels(),
                                .h = input.shape[0],
                                .w = input.shape[1],
                                .kernel_h = op_.kernel_h,
                                .kernel_w = op_.kernel_w,
                                .stride = op_.stride,
                                .pad = op_.pad},
                    .block = context.kernels.block,
                    .planar_input = input.layout == Layout::kPlanar,
                    .bias = op_.bias,
                    .relu = group.relu};
    onednn_call("convolution " + node_.name, [&] { describe(); });
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context_.n == 0) return needs;
    needs.forward_scratch = forward_.scratchpad_desc().get_size();
    if (context_.mode == Mode::kTrain) {
      needs.input_in_backward = true;
      needs.output_in_backward = group_.relu;
      const std::size_t packed = weights_.diff_weights_desc().get_size();
      std::size_t scratch = weights_.scratchpad_desc().get_size();
      if (wants_input_gradient_) scratch = std::max(scratch, data_.scratchpad_desc().get_size());
      needs.backward_scratch = aligned(packed) + scratch;
    }
    return needs;
  }

  void bind(const GroupMemory& memory) override {
    memory_ = memory;
    if (context_.n == 0) return;
    onednn_call("convolution " + node_.name, [&] {
      make_forward();
      if (context_.mode == Mode::kTrain) make_backward();
    });
  }

  void forward(LaneStep& /*step*/) override {
    if (context_.n > 0) run_forward_.run();
  }

  void backward(LaneStep& /*step*/) override {
    if (context_.n == 0) return;
    if (group_.relu) {
      float* dy = memory_.output_gradients[0];
      context_.kernels.relu_backward(dy, memory_.output, dy, output_elements_);
    }
    run_weights_.run();
    run_unpack_.run();
    if (run_data_) run_data_.run();
  }

 private:
  static std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  }

  void make_forward() {
    const dnnl::engine& engine = context_.onednn.engine;
    const int weight = node_.parameters[0];
    std::vector<BoundPrimitive::Argument> arguments = {
        {DNNL_ARG_SRC, convolution_.x(), memory_.inputs[0]},
        {DNNL_ARG_WEIGHTS, forward_.weights_desc(),
         context_.packed.request(weight, forward_.weights_desc().data)},
        {DNNL_ARG_DST, convolution_.y(), memory_.output},
        {DNNL_ARG_SCRATCHPAD, forward_.scratchpad_desc(), memory_.forward_scratch}};
    if (op_.bias) {
      arguments.push_back({DNNL_ARG_BIAS, forward_.bias_desc(),
                           const_cast<float*>(value_of(context_, node_.parameters[1]))});
    }
    run_forward_ = BoundPrimitive(engine, dnnl::convolution_forward(forward_), arguments);
  }

  void make_backward() {
    const dnnl::engine& engine = context_.onednn.engine;
    const int weight = node_.parameters[0];
    float* dy = memory_.output_gradients[0];
    const std::size_t packed = aligned(weights_.diff_weights_desc().get_size());
    std::byte* scratch = memory_.backward_scratch + packed;
    if (wants_input_gradient_) {
      run_data_ = BoundPrimitive(engine, dnnl::convolution_backward_data(data_),
                                 {{DNNL_ARG_DIFF_DST, convolution_.y(), dy},
                                  {DNNL_ARG_WEIGHTS, data_.weights_desc(),
                                   context_.packed.request(weight, data_.weights_desc().data)},
                                  {DNNL_ARG_DIFF_SRC, convolution_.x(), memory_.input_gradients[0]},
                                  {DNNL_ARG_SCRATCHPAD, data_.scratchpad_desc(), scratch}});
    }
    std::vector<BoundPrimitive::Argument> arguments = {
        {DNNL_ARG_SRC, convolution_.x(), memory_.inputs[0]},
        {DNNL_ARG_DIFF_DST, convolution_.y(), dy},
        {DNNL_ARG_DIFF_WEIGHTS, weights_.diff_weights_desc(), memory_.backward_scratch},
        {DNNL_ARG_SCRATCHPAD, weights_.scratchpad_desc(), scratch}};
    if (op_.bias) {
      arguments.push_back({DNNL_ARG_DIFF_BIAS, weights_.diff_bias_desc(),
                           gradient_of(context_, node_.parameters[1])});
    }
    run_weights_ = BoundPrimitive(engine, dnnl::convolution_backward_weights(weights_), arguments);
    const auto target = arena_weight(convolution_.weight_dims());
    const dnnl::reorder::primitive_desc reorder(engine, weights_.diff_weights_desc(), engine,
                                                target);
    run_unpack_ =
        BoundPrimitive(engine, dnnl::reorder(reorder),
                       {{DNNL_ARG_FROM, weights_.diff_weights_desc(), memory_.backward_scratch},
                        {DNNL_ARG_TO, target, gradient_of(context_, weight)}});
  }

  void describe() {
    const dnnl::engine& engine = context_.onednn.engine;
    // The table was measured on AVX-512; without it oneDNN has no Winograd kernel.
    const bool may_choose = context_.winograd && context_.kernels.block == 16;
    const auto algorithm = [&](ConvPass pass) {
      return may_choose ? choose_algorithm(convolution_.problem, pass) : ConvAlgorithm::kDirect;
    };
    forward_ = convolution_.forward(engine, algorithm(ConvPass::kForward));
    if (context_.mode != Mode::kTrain) return;
    if (wants_input_gradient_) {
      data_ = convolution_.backward_data(engine, algorithm(ConvPass::kBackwardData));
    }
    weights_ = convolution_.backward_weights(engine, algorithm(ConvPass::kBackwardWeights));
  }

  const GroupContext context_;
  const FusedGroup& group_;
  const Node& node_;
  const Conv2dOp op_;
  const bool wants_input_gradient_;
  const std::int64_t output_elements_;
  Convolution convolution_;
  dnnl::convolution_forward::primitive_desc forward_;
  dnnl::convolution_backward_data::primitive_desc data_;
  dnnl::convolution_backward_weights::primitive_desc weights_;
  GroupMemory memory_;
  BoundPrimitive run_forward_;
  BoundPrimitive run_data_;
  BoundPrimitive run_weights_;
  BoundPrimitive run_unpack_;
};

}  // namespace

std::unique_ptr<Group> make_conv_group(const GroupContext& context, const FusedGroup& group,
                                       const ValueType& input, const ValueType& output,
                                       bool wants_input_gradient) {
  return std::make_unique<ConvGroup>(context, group, input, output, wants_input_gradient);
}

}  // namespace syncopate
