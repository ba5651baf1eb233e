// The group dense (+ ReLU, with a bias): three matrix products that read the arena directly,
// without packing or copying.
#include "models/backend/cpu/group.h"
#include "models/backend/cpu/matrix_product.h"

namespace syncopate {
namespace {

class DenseGroup final : public PlainGroup {
 public:
  explicit DenseGroup(const GroupSite& site)
      : PlainGroup(site),
        in_(site.input().channels()),
        out_(site.output.channels()),
        wants_input_gradient_(site.wants_input_gradient),
        bias_(node().parameters.size() > 1 ? value(1) : nullptr) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (!trains()) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group().relu;
    return needs;
  }

  void forward(LaneStep& /*step*/) override {
    const std::int64_t n = context().n;
    if (n == 0) return;
    matrix_product('N', 'T', n, out_, in_, x(), value(0), y());
    if (bias_ != nullptr) {
      kernels().add_bias(y(), bias_, n, out_, group().relu);
    }
  }

  void backward(LaneStep& /*step*/) override {
    const std::int64_t n = context().n;
    if (n == 0) return;
    if (group().relu) kernels().relu_backward(dy(), y(), dy(), n * out_);
    if (bias_ != nullptr) {
      kernels().bias_gradient(dy(), gradient(1), n, out_);
    }
    matrix_product('T', 'N', out_, in_, n, dy(), x(), gradient(0));
    if (wants_input_gradient_) {
      matrix_product('N', 'N', n, in_, out_, dy(), value(0), dx());
    }
  }

 private:
  const std::int64_t in_;
  const std::int64_t out_;
  const bool wants_input_gradient_;
  const float* const bias_;  // null if there is none
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const DenseOp& /*op*/) {
  return std::make_unique<DenseGroup>(site);
}

}  // namespace syncopate
