// The groups of convolutions: conv2d (+ bias) (+ ReLU) by oneDNN, with blocked activations and
// weights in the format that oneDNN chooses, and the fused first layer by our own kernels.
#include <algorithm>
#include <utility>

#include "models/backend/cpu/convolution.h"
#include "models/backend/cpu/group.h"
#include "models/backend/cpu/onednn.h"
#include "models/backend/cpu/weight_gradient.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

class ConvGroup final : public Group {
 public:
  ConvGroup(const GroupSite& site, const Conv2dOp& op)
      : context_(site),
        group_(site.group),
        node_(site.node()),
        op_(op),
        wants_input_gradient_(site.wants_input_gradient),
        output_elements_(site.output_elements()) {
    const ValueType& input = site.input();
    const ValueType& output = site.output;
    if (site.n == 0) return;  // oneDNN would use its slow reference code for an empty batch
    const std::int64_t area = std::int64_t{op_.kernel_h} * op_.kernel_w;
    joined_ = {.rows = output.channels() * area,
               .rows_per_group = output.channels() / op_.groups * area,
               .channels = input.channels() / op_.groups,
               .count = groups_to_join(input.channels(), output.channels(), op_.groups,
                                       site.kernels.block, input.layout == Layout::kBlocked)};
    convolution_ = {.problem = {.n = site.n,
                                .c = input.channels(),
                                .k = output.channels(),
                                .h = input.shape[0],
                                .w = input.shape[1],
                                .kernel_h = op_.kernel_h,
                                .kernel_w = op_.kernel_w,
                                .stride = op_.stride,
                                .pad = op_.pad,
                                .groups = op_.groups / joined_.count},
                    .block = site.kernels.block,
                    .planar_input = input.layout == Layout::kPlanar,
                    .bias = op_.bias,
                    .relu = site.group.relu};
    onednn_call("convolution " + node_.name, [&] { describe(); });
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context_.n == 0) return needs;
    needs.forward_scratch = forward_.scratchpad_desc().get_size();
    if (context_.mode == Mode::kTrain) {
      needs.inputs_in_backward = 1;
      needs.output_in_backward = group_.relu;
      // The input's gradient is computed after the weight's, in the same memory.
      needs.backward_scratch = weight_gradient_.scratch_bytes();
      if (wants_input_gradient_) {
        needs.backward_scratch =
            std::max(needs.backward_scratch, data_.scratchpad_desc().get_size());
      }
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
    weight_gradient_.run();
    if (run_data_) run_data_.run();
  }

 private:
  float* packed(const dnnl::memory::desc& format) const {
    return packed_weight(context_, node_.parameters[0], joined_, convolution_, format);
  }

  void make_forward() {
    const dnnl::engine& engine = context_.onednn.engine;
    std::vector<BoundPrimitive::Argument> arguments = {
        {DNNL_ARG_SRC, convolution_.x(), memory_.inputs[0]},
        {DNNL_ARG_WEIGHTS, forward_.weights_desc(), packed(forward_.weights_desc())},
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
    float* dy = memory_.output_gradients[0];
    if (wants_input_gradient_) {
      run_data_ = BoundPrimitive(
          engine, dnnl::convolution_backward_data(data_),
          {{DNNL_ARG_DIFF_DST, convolution_.y(), dy},
           {DNNL_ARG_WEIGHTS, data_.weights_desc(), packed(data_.weights_desc())},
           {DNNL_ARG_DIFF_SRC, convolution_.x(), memory_.input_gradients[0]},
           {DNNL_ARG_SCRATCHPAD, data_.scratchpad_desc(), memory_.backward_scratch}});
    }
    weight_gradient_.bind(engine, memory_.inputs[0], dy, gradient_of(context_, node_.parameters[0]),
                          op_.bias ? gradient_of(context_, node_.parameters[1]) : nullptr,
                          memory_.backward_scratch);
  }

  void describe() {
    const dnnl::engine& engine = context_.onednn.engine;
    // The table of algorithms was measured with AVX-512; oneDNN has no Winograd kernel without it.
    const bool may_choose =
        context_.winograd && context_.kernels.block == 16 && !convolution_.pads_channels();
    const auto algorithm = [&](ConvPass pass) {
      return may_choose ? choose_algorithm(convolution_.problem, pass) : ConvAlgorithm::kDirect;
    };
    forward_ = convolution_.forward(engine, algorithm(ConvPass::kForward));
    if (context_.mode != Mode::kTrain) return;
    if (wants_input_gradient_) {
      data_ = convolution_.backward_data(engine, algorithm(ConvPass::kBackwardData));
    }
    weight_gradient_.describe(engine, convolution_, joined_, algorithm(ConvPass::kBackwardWeights));
  }

  const GroupContext context_;
  const FusedGroup& group_;
  const Node& node_;
  const Conv2dOp op_;
  const bool wants_input_gradient_;
  const std::int64_t output_elements_;
  JoinedGroups joined_;
  Convolution convolution_;
  dnnl::convolution_forward::primitive_desc forward_;
  dnnl::convolution_backward_data::primitive_desc data_;
  WeightGradient weight_gradient_;
  GroupMemory memory_;
  BoundPrimitive run_forward_;
  BoundPrimitive run_data_;
};

// The first layer of a network for small images, computed in one pass over the samples; see
// kernels/conv_pool.cc.
class ConvPoolGroup final : public Group {
 public:
  explicit ConvPoolGroup(const GroupSite& site)
      : context_(site),
        node_(site.node()),
        weight_(value_of(site, node_.parameters[0])),
        bias_(value_of(site, node_.parameters[1])) {
    const ValueType& input = site.input();
    const std::int64_t out_channels = node_.shape[2];
    shape_ = {.n = site.n,
              .in_h = input.shape[0],
              .in_w = input.shape[1],
              .in_channels = static_cast<int>(input.channels()),
              .out_channels = out_channels,
              .pooled_h = node_.shape[0] / 2,
              .pooled_w = node_.shape[1] / 2,
              .channels_last = site.output.layout != Layout::kBlocked};
    check(num_elements(site.output.shape) == shape_.pooled_h * shape_.pooled_w * out_channels,
          "the pooled map is half the size of the convolution's map");
    const std::int64_t blocks = (out_channels + site.kernels.block - 1) / site.kernels.block;
    const std::int64_t packed_elements = blocks * 9 * shape_.in_channels * site.kernels.block;
    winner_bytes_ = static_cast<std::size_t>(site.n * blocks * shape_.pooled_h * shape_.pooled_w) *
                    static_cast<std::size_t>(site.kernels.block);
    packed_.assign(static_cast<std::size_t>(packed_elements), 0.0F);
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context_.mode != Mode::kTrain) return needs;
    needs.saved = winner_bytes_;
    needs.backward_scratch = packed_.size() * sizeof(float);
    needs.inputs_in_backward = 1;
    return needs;
  }

  void bind(const GroupMemory& memory) override { memory_ = memory; }

  void forward(LaneStep& /*step*/) override {
    // The first layer's weights are packed in every step: packing a few hundred weights takes less
    // time than checking whether they have changed.
    context_.kernels.conv_pool_pack(weight_, packed_.data(), shape_);
    context_.kernels.conv_pool(memory_.inputs[0], packed_.data(), bias_, memory_.output, winners(),
                               shape_);
  }

  void backward(LaneStep& /*step*/) override {
    context_.kernels.conv_pool_backward(memory_.inputs[0], memory_.output_gradients[0], winners(),
                                        gradient_of(context_, node_.parameters[0]),
                                        gradient_of(context_, node_.parameters[1]),
                                        reinterpret_cast<float*>(memory_.backward_scratch), shape_);
  }

 private:
  std::uint8_t* winners() const { return reinterpret_cast<std::uint8_t*>(memory_.saved); }

  const GroupContext context_;
  const Node& node_;
  const float* const weight_;
  const float* const bias_;
  ConvPoolShape shape_{};
  std::size_t winner_bytes_ = 0;
  std::vector<float> packed_;
  GroupMemory memory_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const Conv2dOp& op) {
  if (site.group.pool) return std::make_unique<ConvPoolGroup>(site);
  return std::make_unique<ConvGroup>(site, op);
}

}  // namespace syncopate
