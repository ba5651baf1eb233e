// The group of a transposed convolution: conv_transpose2d (+ bias) (+ ReLU) by oneDNN. The forward
// pass is the input gradient of a convolution, and the input gradient its forward pass.
#include <algorithm>
#include <vector>

#include "models/backend/cpu/convolution.h"
#include "models/backend/cpu/group.h"
#include "models/backend/cpu/onednn.h"
#include "models/backend/cpu/weight_gradient.h"

namespace syncopate {
namespace {

class ConvTransposeGroup final : public Group {
 public:
  ConvTransposeGroup(const GroupSite& site, const ConvTranspose2dOp& op)
      : context_(site),
        group_(site.group),
        node_(site.node()),
        op_(op),
        wants_input_gradient_(site.wants_input_gradient),
        channels_(site.output.channels()),
        blocks_((channels_ + site.kernels.block - 1) / site.kernels.block),
        shape_{site.n, blocks_, site.output.pixels()},
        scale_(static_cast<std::size_t>(blocks_ * site.kernels.block), 1.0F),
        shift_(scale_.size(), 0.0F),
        sums_(2 * scale_.size()) {
    if (site.n == 0) return;
    convolution_ = {.problem = {.n = site.n,
                                .c = channels_,
                                .k = site.input().channels(),
                                .h = site.output.shape[0],
                                .w = site.output.shape[1],
                                .kernel_h = op_.kernel_h,
                                .kernel_w = op_.kernel_w,
                                .stride = op_.stride,
                                .pad = op_.pad},
                    .block = site.kernels.block};
    const std::int64_t rows = site.input().channels() * op_.kernel_h * op_.kernel_w;
    joined_ = {.rows = rows, .rows_per_group = rows, .channels = channels_};
    onednn_call("transposed convolution " + node_.name, [&] {
      const dnnl::engine& engine = site.onednn.engine;
      data_ = convolution_.backward_data(engine, ConvAlgorithm::kDirect);
      if (site.mode != Mode::kTrain) return;
      if (wants_input_gradient_) forward_ = convolution_.forward(engine, ConvAlgorithm::kDirect);
      weight_gradient_.describe(engine, convolution_, joined_, ConvAlgorithm::kDirect);
    });
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context_.n == 0) return needs;
    needs.forward_scratch = data_.scratchpad_desc().get_size();
    if (context_.mode == Mode::kTrain) {
      needs.inputs_in_backward = 1;
      needs.output_in_backward = group_.relu;
      needs.backward_scratch = weight_gradient_.scratch_bytes();
      if (wants_input_gradient_) {
        needs.backward_scratch =
            std::max(needs.backward_scratch, forward_.scratchpad_desc().get_size());
      }
    }
    return needs;
  }

  void bind(const GroupMemory& memory) override {
    memory_ = memory;
    if (context_.n == 0) return;
    onednn_call("transposed convolution " + node_.name, [&] {
      const dnnl::engine& engine = context_.onednn.engine;
      run_forward_ =
          BoundPrimitive(engine, dnnl::convolution_backward_data(data_),
                         {{DNNL_ARG_DIFF_DST, convolution_.y(), memory_.inputs[0]},
                          {DNNL_ARG_WEIGHTS, data_.weights_desc(), packed(data_.weights_desc())},
                          {DNNL_ARG_DIFF_SRC, convolution_.x(), memory_.output},
                          {DNNL_ARG_SCRATCHPAD, data_.scratchpad_desc(), memory_.forward_scratch}});
      if (context_.mode == Mode::kTrain) make_backward(engine);
    });
  }

  void forward(LaneStep& /*step*/) override {
    if (context_.n == 0) return;
    run_forward_.run();
    if (op_.bias) {
      std::copy_n(value_of(context_, node_.parameters[1]), channels_, shift_.begin());
      context_.kernels.batch_norm_apply(memory_.output, nullptr, memory_.output, shape_,
                                        scale_.data(), shift_.data(), group_.relu);
    } else if (group_.relu) {
      context_.kernels.relu(memory_.output, memory_.output, elements());
    }
  }

  void backward(LaneStep& /*step*/) override {
    if (context_.n == 0) return;
    float* dy = memory_.output_gradients[0];
    if (group_.relu) context_.kernels.relu_backward(dy, memory_.output, dy, elements());
    // oneDNN reads the channels that fill the last block.
    if (channels_ % context_.kernels.block != 0) {
      context_.kernels.clear_padding(dy, shape_, channels_);
    }
    if (op_.bias) {
      context_.kernels.batch_norm_statistics(dy, shape_, sums_.data());
      float* gradient = gradient_of(context_, node_.parameters[1]);
      for (std::int64_t c = 0; c < channels_; ++c) {
        gradient[c] = static_cast<float>(sums_[static_cast<std::size_t>(c)]);
      }
    }
    weight_gradient_.run();
    if (run_data_) run_data_.run();
  }

 private:
  std::int64_t elements() const {
    return shape_.n * shape_.blocks * shape_.pixels * context_.kernels.block;
  }
  float* packed(const dnnl::memory::desc& format) const {
    return packed_weight(context_, node_.parameters[0], joined_, convolution_, format);
  }

  void make_backward(const dnnl::engine& engine) {
    float* dy = memory_.output_gradients[0];
    if (wants_input_gradient_) {
      run_data_ = BoundPrimitive(
          engine, dnnl::convolution_forward(forward_),
          {{DNNL_ARG_SRC, convolution_.x(), dy},
           {DNNL_ARG_WEIGHTS, forward_.weights_desc(), packed(forward_.weights_desc())},
           {DNNL_ARG_DST, convolution_.y(), memory_.input_gradients[0]},
           {DNNL_ARG_SCRATCHPAD, forward_.scratchpad_desc(), memory_.backward_scratch}});
    }
    // The roles are exchanged: the convolution's input is this operation's output.
    weight_gradient_.bind(engine, dy, memory_.inputs[0], gradient_of(context_, node_.parameters[0]),
                          nullptr, memory_.backward_scratch);
  }

  const GroupContext context_;
  const FusedGroup& group_;
  const Node& node_;
  const ConvTranspose2dOp op_;
  const bool wants_input_gradient_;
  const std::int64_t channels_;
  const std::int64_t blocks_;
  const BlockedShape shape_;  // of the output
  // y * 1 + bias, as a batch norm computes it; channels that fill the last block stay zero.
  const std::vector<float> scale_;
  std::vector<float> shift_;
  std::vector<double> sums_;
  // The convolution of the output to the input.
  Convolution convolution_;
  JoinedGroups joined_;
  dnnl::convolution_backward_data::primitive_desc data_;
  dnnl::convolution_forward::primitive_desc forward_;
  WeightGradient weight_gradient_;
  GroupMemory memory_;
  BoundPrimitive run_forward_;
  BoundPrimitive run_data_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const ConvTranspose2dOp& op) {
  return std::make_unique<ConvTransposeGroup>(site, op);
}

}  // namespace syncopate
