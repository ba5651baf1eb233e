// The group dense (+ ReLU, with a bias): three matrix products that read the arena directly,
// without packing or copying.
#include "models/backend/cpu/group.h"
#include "models/backend/cpu/matrix_product.h"

namespace syncopate {
namespace {

class DenseGroup final : public Group {
 public:
  explicit DenseGroup(const GroupSite& site)
      : context_(site),
        group_(site.group),
        node_(site.node()),
        in_(site.input().channels()),
        out_(site.output.channels()),
        wants_input_gradient_(site.wants_input_gradient),
        weight_(value_of(site, node_.parameters[0])),
        bias_(node_.parameters.size() > 1 ? value_of(site, node_.parameters[1]) : nullptr) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context_.mode != Mode::kTrain) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group_.relu;
    return needs;
  }

  void bind(const GroupMemory& memory) override { memory_ = memory; }

  void forward(LaneStep& /*step*/) override {
    const std::int64_t n = context_.n;
    if (n == 0) return;
    matrix_product('N', 'T', n, out_, in_, memory_.inputs[0], weight_, memory_.output);
    if (bias_ != nullptr) {
      context_.kernels.add_bias(memory_.output, bias_, n, out_, group_.relu);
    }
  }

  void backward(LaneStep& /*step*/) override {
    const std::int64_t n = context_.n;
    if (n == 0) return;
    float* dy = memory_.output_gradients[0];
    if (group_.relu) context_.kernels.relu_backward(dy, memory_.output, dy, n * out_);
    if (bias_ != nullptr) {
      context_.kernels.bias_gradient(dy, gradient_of(context_, node_.parameters[1]), n, out_);
    }
    matrix_product('T', 'N', out_, in_, n, dy, memory_.inputs[0],
                   gradient_of(context_, node_.parameters[0]));
    if (wants_input_gradient_) {
      matrix_product('N', 'N', n, in_, out_, dy, weight_, memory_.input_gradients[0]);
    }
  }

 private:
  const GroupContext context_;
  const FusedGroup& group_;
  const Node& node_;
  const std::int64_t in_;
  const std::int64_t out_;
  const bool wants_input_gradient_;
  const float* const weight_;
  const float* const bias_;  // null if there is none
  GroupMemory memory_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const DenseOp& /*op*/) {
  return std::make_unique<DenseGroup>(site);
}

}  // namespace syncopate
