// conv2d (+ bias) (+ ReLU) through oneDNN: activations blocked, weights in whatever format it likes
// best.

#include <algorithm>
#include <utility>

#include "models/backend/cpu/algorithm_table.h"
#include "models/backend/cpu/groups.h"
#include "models/backend/cpu/onednn.h"

namespace syncopate {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

memory::desc activation(const ValueType& type, std::int64_t n, int block) {
  const memory::dims dims = {n, type.channels(), type.shape[0], type.shape[1]};
  const auto tag = type.layout == Layout::kPlanar ? memory::format_tag::nchw
                   : block == 16                  ? memory::format_tag::nChw16c
                                                  : memory::format_tag::nChw8c;
  return {dims, memory::data_type::f32, tag};
}

dnnl::algorithm to_onednn(ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kWinograd ? dnnl::algorithm::convolution_winograd
                                               : dnnl::algorithm::convolution_direct;
}

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
    x_ = activation(input, context.n, context.kernels.block);
    y_ = activation(output, context.n, context.kernels.block);
    weight_dims_ = {output.channels(), input.channels(), op_.kernel_h, op_.kernel_w};
    onednn_call("convolution " + node_.name, [&] {
      describe(input);
      return 0;
    });
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
    const dnnl::engine& engine = context_.onednn.engine;
    const int weight = node_.parameters[0];
    std::vector<BoundPrimitive::Argument> arguments = {
        {DNNL_ARG_SRC, x_, memory.inputs[0]},
        {DNNL_ARG_WEIGHTS, forward_.weights_desc(),
         context_.packed.request(weight, forward_.weights_desc().data)},
        {DNNL_ARG_DST, y_, memory.output},
        {DNNL_ARG_SCRATCHPAD, forward_.scratchpad_desc(), memory.forward_scratch}};
    if (op_.bias) {
      arguments.push_back({DNNL_ARG_BIAS, forward_.bias_desc(),
                           const_cast<float*>(value_of(context_, node_.parameters[1]))});
    }
    run_forward_ = BoundPrimitive(engine, Forward(forward_), arguments);
    if (context_.mode != Mode::kTrain) return;

    float* dy = memory.output_gradients[0];
    const std::size_t packed = aligned(weights_.diff_weights_desc().get_size());
    std::byte* scratch = memory.backward_scratch + packed;
    if (wants_input_gradient_) {
      run_data_ = BoundPrimitive(engine, BackwardData(data_),
                                 {{DNNL_ARG_DIFF_DST, y_, dy},
                                  {DNNL_ARG_WEIGHTS, data_.weights_desc(),
                                   context_.packed.request(weight, data_.weights_desc().data)},
                                  {DNNL_ARG_DIFF_SRC, x_, memory.input_gradients[0]},
                                  {DNNL_ARG_SCRATCHPAD, data_.scratchpad_desc(), scratch}});
    }
    arguments = {{DNNL_ARG_SRC, x_, memory.inputs[0]},
                 {DNNL_ARG_DIFF_DST, y_, dy},
                 {DNNL_ARG_DIFF_WEIGHTS, weights_.diff_weights_desc(), memory.backward_scratch},
                 {DNNL_ARG_SCRATCHPAD, weights_.scratchpad_desc(), scratch}};
    if (op_.bias) {
      arguments.push_back({DNNL_ARG_DIFF_BIAS, weights_.diff_bias_desc(),
                           gradient_of(context_, node_.parameters[1])});
    }
    run_weights_ = BoundPrimitive(engine, BackwardWeights(weights_), arguments);
    const auto target = arena_weight(weight_dims_);
    const dnnl::reorder::primitive_desc reorder(engine, weights_.diff_weights_desc(), engine,
                                                target);
    run_unpack_ =
        BoundPrimitive(engine, dnnl::reorder(reorder),
                       {{DNNL_ARG_FROM, weights_.diff_weights_desc(), memory.backward_scratch},
                        {DNNL_ARG_TO, target, gradient_of(context_, weight)}});
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

  void describe(const ValueType& input) {
    const dnnl::engine& engine = context_.onednn.engine;
    const memory::dims strides = {op_.stride, op_.stride};
    const memory::dims padding = {op_.pad, op_.pad};
    const memory::desc weight = any_format(weight_dims_);
    const memory::desc bias =
        op_.bias ? memory::desc({weight_dims_[0]}, memory::data_type::f32, memory::format_tag::x)
                 : memory::desc();
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::primitive_attr forward_attributes = attributes;
    if (group_.relu) {
      dnnl::post_ops relu;
      relu.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
      forward_attributes.set_post_ops(relu);
    }
    const ConvProblem problem = {.n = context_.n,
                                 .c = weight_dims_[1],
                                 .k = weight_dims_[0],
                                 .h = input.shape[0],
                                 .w = input.shape[1],
                                 .kernel_h = op_.kernel_h,
                                 .kernel_w = op_.kernel_w,
                                 .stride = op_.stride,
                                 .pad = op_.pad};
    const auto algorithm = [&](ConvPass pass) {
      const bool may = context_.winograd && context_.kernels.block == 16;
      return to_onednn(may ? choose_algorithm(problem, pass) : ConvAlgorithm::kDirect);
    };
    const bool train = context_.mode == Mode::kTrain;
    forward_ = make_forward(train ? prop_kind::forward_training : prop_kind::forward_inference,
                            algorithm(ConvPass::kForward), weight, bias, strides, padding,
                            forward_attributes, engine);
    if (!train) return;
    // The backward passes take a direct forward as their hint: the library does not pair
    // algorithms.
    if (wants_input_gradient_) {
      const auto chosen = algorithm(ConvPass::kBackwardData);
      const auto hint = make_forward(prop_kind::forward_training, chosen, weight, bias, strides,
                                     padding, attributes, engine);
      data_ = BackwardData::primitive_desc(
          BackwardData::desc(chosen, x_, weight, y_, strides, padding, padding), attributes, engine,
          hint);
    }
    const auto chosen = algorithm(ConvPass::kBackwardWeights);
    const auto hint = make_forward(prop_kind::forward_training, chosen, weight, bias, strides,
                                   padding, attributes, engine);
    weights_ = BackwardWeights::primitive_desc(
        op_.bias ? BackwardWeights::desc(chosen, x_, weight, bias, y_, strides, padding, padding)
                 : BackwardWeights::desc(chosen, x_, weight, y_, strides, padding, padding),
        attributes, engine, hint);
  }

  Forward::primitive_desc make_forward(prop_kind kind, dnnl::algorithm algorithm,
                                       const memory::desc& weight, const memory::desc& bias,
                                       const memory::dims& strides, const memory::dims& padding,
                                       const dnnl::primitive_attr& attributes,
                                       const dnnl::engine& engine) const {
    const Forward::desc desc =
        op_.bias ? Forward::desc(kind, algorithm, x_, weight, bias, y_, strides, padding, padding)
                 : Forward::desc(kind, algorithm, x_, weight, y_, strides, padding, padding);
    return {desc, attributes, engine};
  }

  const GroupContext context_;
  const FusedGroup& group_;
  const Node& node_;
  const Conv2dOp op_;
  const bool wants_input_gradient_;
  const std::int64_t output_elements_;
  memory::dims weight_dims_;
  memory::desc x_;
  memory::desc y_;
  Forward::primitive_desc forward_;
  BackwardData::primitive_desc data_;
  BackwardWeights::primitive_desc weights_;
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
