// The group layer_norm. Its statistics belong to one pixel of one sample, so lanes and replicas
// share nothing.
#include "models/backend/cpu/group.h"

namespace syncopate {
namespace {

class LayerNormGroup final : public PlainGroup {
 public:
  LayerNormGroup(const GroupSite& site, const LayerNormOp& op)
      : PlainGroup(site), node_(site.node()), epsilon_(op.epsilon), shape_(site.output_rows()) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (!trains()) return needs;
    needs.saved = static_cast<std::size_t>(2 * rows()) * sizeof(float);
    needs.inputs_in_backward = 1;
    needs.gradient_in_place = 0;
    return needs;
  }

  void forward(LaneStep& /*step*/) override {
    context().kernels.layer_norm(memory().inputs[0], memory().output, shape_, weight(),
                                 value_of(context(), node_.parameters[1]), epsilon_,
                                 trains() ? mean() : nullptr, trains() ? mean() + rows() : nullptr);
  }

  void backward(LaneStep& /*step*/) override {
    context().kernels.layer_norm_backward({.dy = memory().output_gradients[0],
                                           .x = memory().inputs[0],
                                           .weight = weight(),
                                           .mean = mean(),
                                           .inverse_deviation = mean() + rows(),
                                           .dx = memory().input_gradients[0],
                                           .dweight = gradient_of(context(), node_.parameters[0]),
                                           .dbias = gradient_of(context(), node_.parameters[1])},
                                          shape_);
  }

 private:
  std::int64_t rows() const { return shape_.n * shape_.pixels; }
  const float* weight() const { return value_of(context(), node_.parameters[0]); }
  float* mean() const { return reinterpret_cast<float*>(memory().saved); }

  const Node& node_;
  const float epsilon_;
  const ChannelRows shape_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const LayerNormOp& op) {
  return std::make_unique<LayerNormGroup>(site, op);
}

}  // namespace syncopate
