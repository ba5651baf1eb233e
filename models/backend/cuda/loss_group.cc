// Lowers softmax cross-entropy and the count of correct predictions for the GPU.
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class LossGroup final : public PlainGroup {
 public:
  LossGroup(const GroupContext& context, const FusedGroup& group)
      : PlainGroup(context, group),
        shape_{.n = context.n,
               .pixels = in().size() == 3 ? static_cast<int>(in()[0] * in()[1]) : 0,
               .classes = static_cast<int>(in().back()),
               .smoothing = context.trains() ? context.graph.loss().label_smoothing : 0.0F} {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.forward_scratch = scratch_bytes();
    if (!context().trains()) return needs;
    needs.inputs_in_backward = 1;
    // The backward pass computes the loss again and needs memory for its LossSums, which nothing
    // reads; they lie at the end of the scratch memory.
    needs.backward_scratch = aligned(scratch_bytes()) + sizeof(LossSums);
    return needs;
  }

  void forward(const Step& step) override {
    start(step, nullptr, step.sums, memory().forward_scratch);
  }

  void backward(const Step& step) override {
    if (!wants_input_gradient() || context().n == 0) return;
    void* const scratch = memory().backward_scratch;
    start(step, static_cast<T*>(memory().input_gradients[0]),
          static_cast<LossSums*>(behind(scratch, scratch_bytes())), scratch);
  }

 private:
  std::size_t scratch_bytes() const {
    return static_cast<std::size_t>(softmax_cross_entropy_scratch(shape_));
  }

  void start(const Step& step, T* gradient, LossSums* sums, void* scratch) {
    const LossScale* const scaled = variables().loss_scale();
    LossShape shape = shape_;
    shape.divisor = static_cast<double>(step.loss_divisor);
    softmax_cross_entropy(shape, static_cast<const T*>(memory().inputs[0]), step.labels,
                          scaled == nullptr ? nullptr : &scaled->scale, gradient, sums, scratch,
                          stream());
  }

  const LossShape shape_;
};

}  // namespace

std::unique_ptr<Group> make_loss_group(const GroupContext& context, const FusedGroup& group) {
  return with_type(context.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<LossGroup<T>>(context, group);
  });
}

}  // namespace syncopate::cuda
