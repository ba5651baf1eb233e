// The base class of the groups of conv2d and conv_transpose2d. Computes the bias and the ReLU, and
// decides on the order and the memory of the gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "models/backend/cuda/even_padding.h"
#include "models/backend/cuda/group.h"

namespace syncopate::cuda {

// The base class of the groups of convolutions; the derived class plans the passes of its
// convolution. T: the type of activations.
template <typename T>
class ConvolutionGroup : public PlainGroup {
 public:
  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.forward_scratch = workspace_of(forward_);
    if (!context().trains()) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group().relu;
    // The gradients of a convolution are computed one after the other in one block of scratch,
    // which is as large as the largest of them needs. The weight gradient needs the 16-bit gradient
    // and a workspace; the input gradient and the bias gradient need a workspace each.
    const std::size_t weights = kIsF32 ? 0 : aligned(weight_bytes());
    needs.backward_scratch =
        std::max({weights + workspace_of(weight_gradient_), workspace_of(input_gradient_),
                  static_cast<std::size_t>(bias_gradient_scratch(rows(), channels()))});
    return needs;
  }

 protected:
  static constexpr bool kIsF32 = std::is_same_v<T, float>;

  // Makes the group; the derived class then plans the passes. shape: the convolution that the
  // library computes with the layer's weights (conv_shape.h).
  ConvolutionGroup(const GroupContext& context, const FusedGroup& group, const ConvShape& shape,
                   bool has_bias)
      : PlainGroup(context, group), shape_(shape), has_bias_(has_bias) {}

  std::unique_ptr<Convolution> plan(ConvPass pass) const {
    return plan_convolution(context(), pass, shape_);
  }

  void add_bias_and_relu() {
    T* const y = static_cast<T*>(memory().output);
    if (has_bias_) {
      add_bias(y, variables().value(main().parameters[1]), rows(), channels(), group().relu,
               stream());
    } else if (group().relu) {
      relu_forward(y, y, output_elements(), stream());
    }
  }

  // Begins the backward pass: applies the backward pass of the ReLU in place, if there is a ReLU,
  // and computes the gradient of the bias. Returns the gradient of the convolution's output.
  T* start_backward() {
    const GroupMemory& m = memory();
    T* const dy = static_cast<T*>(m.output_gradients[0]);
    if (group().relu) {
      relu_backward(static_cast<const T*>(m.output), dy, dy, output_elements(), stream());
    }
    if (has_bias_) {
      bias_gradient(dy, variables().gradient(main().parameters[1]), rows(), channels(),
                    m.backward_scratch, stream());
    }
    return dy;
  }

  // Computes the weight gradient from x and y, which have the meaning of ConvArrays::x and
  // ConvArrays::y in the pass kWeightGradient. In 16-bit precisions, the gradient is computed in
  // scratch, and widen(gradient, dw) converts it to the f32 gradient dw of the variables.
  template <typename Widen>
  void compute_weight_gradient(void* x, void* y, Widen widen) {
    void* const scratch = memory().backward_scratch;
    float* const dw = variables().gradient(main().parameters[0]);
    if constexpr (kIsF32) {
      weight_gradient_->run({.x = x, .w = dw, .y = y, .workspace = scratch});
    } else {
      weight_gradient_->run(
          {.x = x, .w = scratch, .y = y, .workspace = behind(scratch, weight_bytes())});
      widen(static_cast<const T*>(scratch), dw);
    }
  }

  static std::size_t workspace_of(const std::unique_ptr<Convolution>& convolution) {
    return convolution == nullptr ? 0 : convolution->workspace_bytes();
  }
  const ConvShape& shape() const { return shape_; }
  std::int64_t rows() const { return context().n * out()[0] * out()[1]; }
  int channels() const { return static_cast<int>(out()[2]); }
  // Returns the bytes of the weights that the library reads, including padded channels.
  std::size_t weight_bytes() const {
    return static_cast<std::size_t>(shape_.weight_elements()) * sizeof(T);
  }
  // Casts away `const`, because cuDNN takes read-only arrays as pointers to mutable memory.
  void* weight() const { return const_cast<void*>(variables().weight(main().parameters[0])); }

  // The passes, planned by the derived class. Null if a pass is not needed.
  std::unique_ptr<Convolution> forward_;
  std::unique_ptr<Convolution> weight_gradient_;
  std::unique_ptr<Convolution> input_gradient_;

 private:
  const ConvShape shape_;
  const bool has_bias_;
};

}  // namespace syncopate::cuda
