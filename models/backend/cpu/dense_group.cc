// The group dense (+ ReLU): three matrix products that read the arena directly, without packing or
// copying.
#include <dnnl.h>
#include <fmt/format.h>

#include "models/backend/cpu/group.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

// Computes c [m, n] = op(a) * op(b), row-major f32, where 'T' transposes an operand and 'N' does
// not. The inner dimension is k. Throws DeviceError.
void multiply(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
              const float* a, const float* b, float* c) {
  const std::int64_t lda = transpose_a == 'N' ? k : m;
  const std::int64_t ldb = transpose_b == 'N' ? n : k;
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a, transpose_b, m, n, k, 1.0F, a, lda, b, ldb, 0.0F, c, n);
  if (status != dnnl_success) {
    throw DeviceError(fmt::format("oneDNN: sgemm: status {}", static_cast<int>(status)));
  }
}

class DenseGroup final : public Group {
 public:
  DenseGroup(const GroupContext& context, const FusedGroup& group, const ValueType& input,
             const ValueType& output, bool wants_input_gradient)
      : context_(context),
        group_(group),
        node_(context.graph.nodes[static_cast<std::size_t>(group.main)]),
        in_(input.channels()),
        out_(output.channels()),
        wants_input_gradient_(wants_input_gradient),
        weight_(value_of(context, node_.parameters[0])),
        bias_(value_of(context, node_.parameters[1])) {}

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
    multiply('N', 'T', n, out_, in_, memory_.inputs[0], weight_, memory_.output);
    context_.kernels.add_bias(memory_.output, bias_, n, out_, group_.relu);
  }

  void backward(LaneStep& /*step*/) override {
    const std::int64_t n = context_.n;
    if (n == 0) return;
    float* dy = memory_.output_gradients[0];
    if (group_.relu) context_.kernels.relu_backward(dy, memory_.output, dy, n * out_);
    context_.kernels.bias_gradient(dy, gradient_of(context_, node_.parameters[1]), n, out_);
    multiply('T', 'N', out_, in_, n, dy, memory_.inputs[0],
             gradient_of(context_, node_.parameters[0]));
    if (wants_input_gradient_) {
      multiply('N', 'N', n, in_, out_, dy, weight_, memory_.input_gradients[0]);
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
  const float* const bias_;
  GroupMemory memory_;
};

}  // namespace

std::unique_ptr<Group> make_dense_group(const GroupContext& context, const FusedGroup& group,
                                        const ValueType& input, const ValueType& output,
                                        bool wants_input_gradient) {
  return std::make_unique<DenseGroup>(context, group, input, output, wants_input_gradient);
}

}  // namespace syncopate
