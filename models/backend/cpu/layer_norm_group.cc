// The group layer_norm. Its statistics belong to one pixel of one sample, so lanes and replicas
// share nothing.
#include "models/backend/cpu/group.h"

namespace syncopate {
namespace {

class LayerNormGroup final : public PlainGroup {
 public:
  LayerNormGroup(const GroupSite& site, const LayerNormOp& op)
      : PlainGroup(site), epsilon_(op.epsilon), shape_(site.output_rows()) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (!trains()) return needs;
    needs.saved = static_cast<std::size_t>(2 * rows()) * sizeof(float);
    needs.inputs_in_backward = 1;
    needs.gradient_in_place = 0;
    return needs;
  }

  void forward(LaneStep& /*step*/) override {
    kernels().layer_norm(x(), y(), shape_, value(0), value(1), epsilon_,
                         trains() ? mean() : nullptr, trains() ? mean() + rows() : nullptr);
  }

  void backward(LaneStep& /*step*/) override {
    kernels().layer_norm_backward({.dy = dy(),
                                   .x = x(),
                                   .weight = value(0),
                                   .mean = mean(),
                                   .inverse_deviation = mean() + rows(),
                                   .dx = dx(),
                                   .dweight = gradient(0),
                                   .dbias = gradient(1)},
                                  shape_);
  }

 private:
  std::int64_t rows() const { return shape_.n * shape_.pixels; }
  float* mean() const { return reinterpret_cast<float*>(memory().saved); }

  const float epsilon_;
  const ChannelRows shape_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const LayerNormOp& op) {
  return std::make_unique<LayerNormGroup>(site, op);
}

}  // namespace syncopate
