// The first layer of small networks, in one pass over the samples: see kernels/conv_pool.cc.
#include "models/backend/cpu/groups.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

class ConvPoolGroup final : public Group {
 public:
  ConvPoolGroup(const GroupContext& context, const FusedGroup& group, const ValueType& input,
                const ValueType& output)
      : context_(context),
        node_(context.graph.nodes[static_cast<std::size_t>(group.main)]),
        weight_(value_of(context, node_.parameters[0])),
        bias_(value_of(context, node_.parameters[1])) {
    const Shape& pooled = context.graph.nodes[static_cast<std::size_t>(group.output)].shape;
    const std::int64_t out_channels = node_.shape[2];
    shape_ = {.n = context.n,
              .in_h = input.shape[0],
              .in_w = input.shape[1],
              .in_channels = static_cast<int>(input.channels()),
              .out_channels = out_channels,
              .pooled_h = node_.shape[0] / 2,
              .pooled_w = node_.shape[1] / 2,
              .channels_last = output.layout != Layout::kBlocked};
    check(num_elements(pooled) == shape_.pooled_h * shape_.pooled_w * out_channels,
          "the pooled map has this size");
    const std::int64_t blocks = (out_channels + context.kernels.block - 1) / context.kernels.block;
    const std::int64_t packed_elements = blocks * 9 * shape_.in_channels * context.kernels.block;
    winner_bytes_ =
        static_cast<std::size_t>(context.n * blocks * shape_.pooled_h * shape_.pooled_w) *
        static_cast<std::size_t>(context.kernels.block);
    packed_.assign(static_cast<std::size_t>(packed_elements), 0.0F);
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context_.mode != Mode::kTrain) return needs;
    needs.saved = winner_bytes_;
    needs.backward_scratch = packed_.size() * sizeof(float);
    needs.input_in_backward = true;
    return needs;
  }

  void bind(const GroupMemory& memory) override { memory_ = memory; }

  void forward(LaneStep& /*step*/) override {
    // A few hundred weights: packing them anew costs less than asking whether they changed.
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

std::unique_ptr<Group> make_conv_pool_group(const GroupContext& context, const FusedGroup& group,
                                            const ValueType& input, const ValueType& output) {
  return std::make_unique<ConvPoolGroup>(context, group, input, output);
}

}  // namespace syncopate
