// Lowers matmul to batches of matrix products.
#include <algorithm>

#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

class MatmulGroup final : public PlainGroup {
 public:
  MatmulGroup(const GroupContext& context, const FusedGroup& group) : PlainGroup(context, group) {
    if (context.n == 0) return;
    const std::int64_t m = out()[1];
    const std::int64_t n = out()[2];
    const std::int64_t k = in()[2];
    forward_ = plan({.m = m, .n = n, .k = k});
    if (!context.trains()) return;
    left_gradient_ = plan({.m = m, .n = k, .k = n, .transpose_b = true});
    right_gradient_ = plan({.m = k, .n = n, .k = m, .transpose_a = true});
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (forward_ == nullptr) return needs;
    needs.forward_scratch = forward_->workspace_bytes();
    if (!context().trains()) return needs;
    needs.inputs_in_backward = 2;
    needs.backward_scratch =
        std::max(left_gradient_->workspace_bytes(), right_gradient_->workspace_bytes());
    return needs;
  }

  void forward(const Step& /*step*/) override {
    if (forward_ == nullptr) return;
    const GroupMemory& m = memory();
    forward_->run(
        {.a = m.inputs[0], .b = m.inputs[1], .c = m.output, .workspace = m.forward_scratch});
  }

  void backward(const Step& /*step*/) override {
    if (forward_ == nullptr) return;
    const GroupMemory& m = memory();
    const void* const dy = m.output_gradients[0];
    if (wants_input_gradient(0)) {
      left_gradient_->run(
          {.a = dy, .b = m.inputs[1], .c = m.input_gradients[0], .workspace = m.backward_scratch});
    }
    if (wants_input_gradient(1)) {
      right_gradient_->run(
          {.a = m.inputs[0], .b = dy, .c = m.input_gradients[1], .workspace = m.backward_scratch});
    }
  }

 private:
  std::unique_ptr<Product> plan(ProductShape shape) const {
    shape.batch = context().n * out()[0];
    shape.type = context().precision;
    shape.result_type = context().precision;
    return context().operations->product(shape, limits_of(context()));
  }

  std::unique_ptr<Product> forward_;
  std::unique_ptr<Product> left_gradient_;
  std::unique_ptr<Product> right_gradient_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const MatmulOp& /*op*/) {
  return std::make_unique<MatmulGroup>(site, site.group);
}

}  // namespace syncopate::cuda
