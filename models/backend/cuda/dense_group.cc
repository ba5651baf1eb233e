// dense (+ ReLU): three products, and our kernels for bias and ReLU.
#include <algorithm>

#include "models/backend/cuda/group.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class DenseGroup final : public PlainGroup {
 public:
  DenseGroup(const GroupContext& context, const FusedGroup& group, bool has_input_gradient)
      : PlainGroup(context, group), in_(num_elements(in())), out_(out().back()) {
    if (context.n == 0) return;
    const auto plan = [&](ProductShape shape, Precision result) {
      shape.type = context.precision;
      shape.result_type = result;
      return context.operations->product(shape, limits_of(context));
    };
    const std::int64_t n = context.n;
    forward_ = plan({.m = n, .n = out_, .k = in_, .transpose_b = true}, context.precision);
    if (!context.trains()) return;
    weight_gradient_ = plan({.m = out_, .n = in_, .k = n, .transpose_a = true}, Precision::kF32);
    if (has_input_gradient) {
      input_gradient_ = plan({.m = n, .n = in_, .k = out_}, context.precision);
    }
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.forward_scratch = workspace_of(forward_);
    if (!context().trains()) return needs;
    needs.input_in_backward = true;
    needs.output_in_backward = group().relu;
    needs.backward_scratch = std::max(
        {workspace_of(weight_gradient_), workspace_of(input_gradient_),
         static_cast<std::size_t>(bias_gradient_scratch(context().n, static_cast<int>(out_)))});
    return needs;
  }

  void forward(const Step& /*step*/) override {
    if (context().n == 0) return;
    const GroupMemory& m = memory();
    forward_->run(m.inputs[0], weight(), m.output, m.forward_scratch);
    add_bias(static_cast<T*>(m.output), variables().value(main().parameters[1]), context().n,
             static_cast<int>(out_), group().relu, stream());
  }

  void backward(const Step& /*step*/) override {
    if (context().n == 0) return;
    const GroupMemory& m = memory();
    T* const dy = static_cast<T*>(m.output_gradients[0]);
    if (group().relu) {
      relu_backward(static_cast<const T*>(m.output), dy, dy, output_elements(), stream());
    }
    bias_gradient(dy, variables().gradient(main().parameters[1]), context().n,
                  static_cast<int>(out_), m.backward_scratch, stream());
    weight_gradient_->run(dy, m.inputs[0], variables().gradient(main().parameters[0]),
                          m.backward_scratch);
    // None is planned where samples were only flattened on their way, by a group of its own.
    if (!wants_input_gradient() || input_gradient_ == nullptr) return;
    input_gradient_->run(dy, weight(), m.input_gradients[0], m.backward_scratch);
  }

 private:
  static std::size_t workspace_of(const std::unique_ptr<Product>& product) {
    return product == nullptr ? 0 : product->workspace_bytes();
  }
  const void* weight() const { return variables().weight(main().parameters[0]); }

  const std::int64_t in_;
  const std::int64_t out_;
  std::unique_ptr<Product> forward_;
  std::unique_ptr<Product> weight_gradient_;
  std::unique_ptr<Product> input_gradient_;
};

}  // namespace

std::unique_ptr<Group> make_dense_group(const GroupContext& context, const FusedGroup& group) {
  // Samples may come flat already, or flattened on their way in.
  bool from_samples = std::holds_alternative<InputOp>(context.node(group.inputs[0]).operation);
  if (std::holds_alternative<FlattenOp>(context.node(group.inputs[0]).operation)) {
    const NodeId flattened = context.node(group.inputs[0]).inputs[0];
    from_samples = std::holds_alternative<InputOp>(context.node(flattened).operation);
  }
  return with_type(context.precision, [&]<typename T>() -> std::unique_ptr<Group> {
    return std::make_unique<DenseGroup<T>>(context, group, !from_samples);
  });
}

}  // namespace syncopate::cuda
