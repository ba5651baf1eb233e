// Lowers dense (+ ReLU, with a bias) to three matrix products, which add the bias and sum its
// gradient where the library supports it, and our kernels for the rest.
#include <algorithm>

#include "models/backend/cuda/group.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

template <typename T>
class DenseGroup final : public PlainGroup {
 public:
  DenseGroup(const GroupContext& context, const FusedGroup& group, bool has_input_gradient)
      : PlainGroup(context, group), in_(num_elements(in())), out_(out().back()) {
    if (context.n == 0) return;
    const std::int64_t n = context.n;
    const Precision type = context.precision;
    forward_ = plan({.m = n,
                     .n = out_,
                     .k = in_,
                     .transpose_b = true,
                     .type = type,
                     .result_type = type,
                     .epilogue = group.relu || !has_bias() ? Epilogue::kNone : Epilogue::kBias});
    if (!context.trains()) return;
    weight_gradient_ = plan(
        {.m = out_,
         .n = in_,
         .k = n,
         .transpose_a = true,
         .type = type,
         .result_type = Precision::kF32,
         // cuBLASLt does not document how it orders the sums of rows, so deterministic runs use our
         // kernel.
         .epilogue = context.deterministic || !has_bias() ? Epilogue::kNone : Epilogue::kRowSums});
    if (!has_input_gradient) return;
    input_gradient_ = plan({.m = n, .n = in_, .k = out_, .type = type, .result_type = type});
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.forward_scratch = workspace_of(forward_);
    if (!context().trains()) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group().relu;
    needs.backward_scratch =
        std::max(workspace_of(weight_gradient_), workspace_of(input_gradient_));
    if (sums_bias_gradient()) {
      const auto sums = bias_gradient_scratch(context().n, static_cast<int>(out_));
      needs.backward_scratch = std::max(needs.backward_scratch, static_cast<std::size_t>(sums));
    }
    return needs;
  }

  void forward(const Step& /*step*/) override {
    if (context().n == 0) return;
    const GroupMemory& m = memory();
    // cuBLASLt requires a bias of the product's type.
    forward_.product->run({.a = m.inputs[0],
                           .b = weight(),
                           .c = m.output,
                           .bias = has_bias() ? variables().weight(main().parameters[1]) : nullptr,
                           .workspace = m.forward_scratch});
    if (forward_.has_epilogue || !has_bias()) return;
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
    float* const db = has_bias() ? variables().gradient(main().parameters[1]) : nullptr;
    if (sums_bias_gradient()) {
      bias_gradient(dy, db, context().n, static_cast<int>(out_), m.backward_scratch, stream());
    }
    weight_gradient_.product->run({.a = dy,
                                   .b = m.inputs[0],
                                   .c = variables().gradient(main().parameters[0]),
                                   .row_sums = db,
                                   .workspace = m.backward_scratch});
    // product is null if this dense layer reads the samples through a group that flattens them:
    // nothing uses the gradient of the samples.
    if (!wants_input_gradient() || input_gradient_.product == nullptr) return;
    input_gradient_.product->run(
        {.a = dy, .b = weight(), .c = m.input_gradients[0], .workspace = m.backward_scratch});
  }

 private:
  struct Planned {
    std::unique_ptr<Product> product;
    bool has_epilogue = false;
  };

  // Plans the matrix product without its epilogue if the library does not support the epilogue.
  Planned plan(ProductShape shape) const {
    Operations& operations = *context().operations;
    if (shape.epilogue != Epilogue::kNone) {
      try {
        return {operations.product(shape, limits_of(context())), true};
      } catch (const UnavailableError&) {
        shape.epilogue = Epilogue::kNone;
      }
    }
    return {operations.product(shape, limits_of(context())), false};
  }
  static std::size_t workspace_of(const Planned& planned) {
    return planned.product == nullptr ? 0 : planned.product->workspace_bytes();
  }
  bool has_bias() const { return main().parameters.size() > 1; }
  // Whether a kernel of ours sums the gradient of the bias.
  bool sums_bias_gradient() const { return has_bias() && !weight_gradient_.has_epilogue; }
  const void* weight() const { return variables().weight(main().parameters[0]); }

  const std::int64_t in_;
  const std::int64_t out_;
  Planned forward_;
  Planned weight_gradient_;
  Planned input_gradient_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const DenseOp& /*op*/) {
  // The samples reach this dense layer either flat or through a group that flattens them.
  bool from_samples = std::holds_alternative<InputOp>(site.node(site.group.inputs[0]).operation);
  if (std::holds_alternative<FlattenOp>(site.node(site.group.inputs[0]).operation)) {
    const NodeId flattened = site.node(site.group.inputs[0]).inputs[0];
    from_samples = std::holds_alternative<InputOp>(site.node(flattened).operation);
  }
  return make_typed<DenseGroup>(site, !from_samples);
}

}  // namespace syncopate::cuda
