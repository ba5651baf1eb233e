// dense (+ ReLU): three products, and our kernels for bias and ReLU.
#include <algorithm>
#include <optional>

#include "models/backend/cuda/group.h"
#include "models/backend/cuda/matmul.h"

namespace syncopate::cuda {
namespace {

cudaDataType_t type_of(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return CUDA_R_16BF;
    case Precision::kF16:
      return CUDA_R_16F;
    case Precision::kF32:
      break;
  }
  return CUDA_R_32F;
}

template <typename T>
class DenseGroup final : public PlainGroup {
 public:
  DenseGroup(const GroupContext& context, const FusedGroup& group, bool has_input_gradient)
      : PlainGroup(context, group), in_(num_elements(in())), out_(out().back()) {
    if (context.n == 0) return;
    MatmulShape shape{.m = context.n,
                      .n = out_,
                      .k = in_,
                      .transpose_b = true,
                      .type = type_of(context.precision),
                      .c_type = type_of(context.precision),
                      .rounds_inputs = rounds_inputs(context),
                      .deterministic = context.deterministic};
    forward_.emplace(context.blas, shape);
    if (!context.trains()) return;
    if (has_input_gradient) {
      shape = {.m = context.n,
               .n = in_,
               .k = out_,
               .type = shape.type,
               .c_type = shape.c_type,
               .rounds_inputs = shape.rounds_inputs,
               .deterministic = shape.deterministic};
      input_gradient_.emplace(context.blas, shape);
    }
    shape = {.m = out_,
             .n = in_,
             .k = context.n,
             .transpose_a = true,
             .type = shape.type,
             .c_type = CUDA_R_32F,
             .rounds_inputs = shape.rounds_inputs,
             .deterministic = shape.deterministic};
    weight_gradient_.emplace(context.blas, shape);
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
    forward_->run(m.inputs[0], weight(), m.output, m.forward_scratch, stream());
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
                          m.backward_scratch, stream());
    if (!wants_input_gradient()) return;
    input_gradient_->run(dy, weight(), m.input_gradients[0], m.backward_scratch, stream());
  }

 private:
  static std::size_t workspace_of(const std::optional<Matmul>& product) {
    return product ? product->workspace_bytes() : 0;
  }
  const void* weight() const { return variables().weight(main().parameters[0]); }

  const std::int64_t in_;
  const std::int64_t out_;
  std::optional<Matmul> forward_;
  std::optional<Matmul> weight_gradient_;
  std::optional<Matmul> input_gradient_;
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
