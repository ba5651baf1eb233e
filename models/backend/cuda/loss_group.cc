// Lowers the losses and their metrics for the GPU.
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

// The memory and the calls of a loss. Derived classes start its kernels.
template <typename T>
class LossGroup : public PlainGroup {
 public:
  using PlainGroup::PlainGroup;

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

 protected:
  virtual std::size_t scratch_bytes() const = 0;
  virtual void start(const Step& step, T* gradient, LossSums* sums, void* scratch) = 0;

  const T* x() const { return static_cast<const T*>(memory().inputs[0]); }
  const float* scale() const {
    const LossScale* const scaled = variables().loss_scale();
    return scaled == nullptr ? nullptr : &scaled->scale;
  }
};

template <typename T>
class SoftmaxCrossEntropyGroup final : public LossGroup<T> {
 public:
  SoftmaxCrossEntropyGroup(const GroupContext& context, const FusedGroup& group)
      : LossGroup<T>(context, group),
        shape_{
            .n = context.n,
            .pixels = this->in().size() == 3 ? static_cast<int>(this->in()[0] * this->in()[1]) : 0,
            .classes = static_cast<int>(this->in().back()),
            .smoothing = context.trains() ? context.graph.loss().label_smoothing : 0.0F} {}

 private:
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(softmax_cross_entropy_scratch(shape_));
  }
  void start(const Step& step, T* gradient, LossSums* sums, void* scratch) override {
    LossShape shape = shape_;
    shape.divisor = static_cast<double>(step.loss_divisor);
    softmax_cross_entropy(shape, this->x(), static_cast<const std::int32_t*>(step.target),
                          this->scale(), gradient, sums, scratch, this->stream());
  }

  const LossShape shape_;
};

template <typename T>
class NumberLossGroup final : public LossGroup<T> {
 public:
  NumberLossGroup(const GroupContext& context, const FusedGroup& group)
      : LossGroup<T>(context, group),
        shape_{.n = context.n,
               .values = static_cast<int>(this->in().back()),
               .is_binary_cross_entropy =
                   context.graph.loss().kind == LossKind::kBinaryCrossEntropy} {}

 private:
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(number_loss_scratch(shape_));
  }
  void start(const Step& step, T* gradient, LossSums* sums, void* scratch) override {
    NumberLossShape shape = shape_;
    shape.divisor = static_cast<double>(step.loss_divisor);
    number_loss(shape, this->x(), static_cast<const float*>(step.target), this->scale(), gradient,
                sums, scratch, this->stream());
  }

  const NumberLossShape shape_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const LossOp& op) {
  return has_classes(op.kind) ? make_typed<SoftmaxCrossEntropyGroup>(site)
                              : make_typed<NumberLossGroup>(site);
}

}  // namespace syncopate::cuda
