// The base class of the groups of conv2d and conv_transpose2d. Computes the passes of their
// convolution by oneDNN. Included by .cc files of this folder only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/cpu/convolution.h"
#include "models/backend/cpu/group.h"
#include "models/backend/cpu/joined_groups.h"
#include "models/backend/cpu/onednn.h"
#include "models/backend/cpu/weight_gradient.h"

namespace syncopate {

// How a group uses the passes of its convolution. kConvolution: the group's forward pass is the
// forward pass of the convolution. kTransposed: the group's forward pass is the convolution's input
// gradient, the group's input gradient is the convolution's forward pass, and the group's output
// has the shape of the convolution's input.
enum class Roles : std::uint8_t { kConvolution, kTransposed };

class ConvolutionGroup : public PlainGroup {
 public:
  GroupNeeds needs() const final {
    GroupNeeds needs;
    if (context().n == 0) return needs;
    needs.forward_scratch = is_transposed() ? scratch_bytes(data_) : scratch_bytes(forward_);
    if (!trains()) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group().relu;
    // The gradient of the input is computed after the gradient of the weight, in the same scratch
    // memory.
    needs.backward_scratch = weight_gradient_.scratch_bytes();
    if (wants_input_gradient_) {
      needs.backward_scratch = std::max(
          needs.backward_scratch, is_transposed() ? scratch_bytes(forward_) : scratch_bytes(data_));
    }
    return needs;
  }

  void bind(const GroupMemory& memory) final {
    PlainGroup::bind(memory);
    if (context().n == 0) return;
    onednn_call(name_, [&] {
      run_forward_ = is_transposed() ? bound_data(x(), y(), memory.forward_scratch)
                                     : bound_forward(x(), y(), memory.forward_scratch);
      if (trains()) bind_backward(memory.inputs[0], memory.backward_scratch);
    });
  }

 protected:
  // Makes the group; the derived class then calls describe() with its convolution. what: the kind
  // of the group in error messages, such as "convolution"; the messages name the node after it.
  ConvolutionGroup(const GroupSite& site, Roles roles, std::string_view what)
      : PlainGroup(site),
        roles_(roles),
        name_(std::string(what) + " " + site.node().name),
        wants_input_gradient_(trains() && site.wants_input_gradient),
        output_elements_(site.output_elements()) {}

  // Sets the convolution and makes the primitive descriptors of the passes that the group needs.
  // joined: how many neighbouring groups of the convolution are computed as one group. algorithm: a
  // function that returns the algorithm of a ConvPass.
  template <typename Algorithm>
  void describe(const Convolution& convolution, const JoinedGroups& joined,
                const Algorithm& algorithm) {
    convolution_ = convolution;
    joined_ = joined;
    onednn_call(name_, [&] {
      const dnnl::engine& engine = context().onednn.engine;
      if (!is_transposed() || wants_input_gradient_) {
        forward_ = convolution_.forward(engine, algorithm(ConvPass::kForward));
      }
      if (is_transposed() || wants_input_gradient_) {
        data_ = convolution_.backward_data(engine, algorithm(ConvPass::kBackwardData));
      }
      if (!trains()) return;
      weight_gradient_.describe(engine, convolution_, joined_,
                                algorithm(ConvPass::kBackwardWeights));
    });
  }

  void run_forward() const { run_forward_.run(); }
  // If the group has a ReLU, applies the backward pass of the ReLU to the gradient of the output,
  // in place.
  void mask_gradient() const {
    if (group().relu) kernels().relu_backward(dy(), y(), dy(), output_elements_);
  }
  void run_backward() const {
    weight_gradient_.run();
    if (run_data_) run_data_.run();
  }
  std::int64_t output_elements() const { return output_elements_; }

 private:
  bool is_transposed() const { return roles_ == Roles::kTransposed; }

  template <typename Description>
  static std::size_t scratch_bytes(const Description& pass) {
    return pass.scratchpad_desc().get_size();
  }

  float* packed(const dnnl::memory::desc& format) const {
    return packed_weight(context(), node().parameters[0], joined_, convolution_, format);
  }

  // Returns the convolution's forward pass, bound to memory. from: the convolution's x. into: the
  // convolution's y.
  BoundPrimitive bound_forward(const float* from, float* into, std::byte* scratch) const {
    std::vector<BoundPrimitive::Argument> arguments = {
        {DNNL_ARG_SRC, convolution_.x(), const_cast<float*>(from)},
        {DNNL_ARG_WEIGHTS, forward_.weights_desc(), packed(forward_.weights_desc())},
        {DNNL_ARG_DST, convolution_.y(), into},
        {DNNL_ARG_SCRATCHPAD, forward_.scratchpad_desc(), scratch}};
    if (convolution_.bias) {
      arguments.push_back({DNNL_ARG_BIAS, forward_.bias_desc(), const_cast<float*>(value(1))});
    }
    return {context().onednn.engine, dnnl::convolution_forward(forward_), arguments};
  }

  // Returns the computation of the convolution's input gradient, bound to memory. from: the
  // gradient of the convolution's y. into: the gradient of the convolution's x.
  BoundPrimitive bound_data(const float* from, float* into, std::byte* scratch) const {
    return {context().onednn.engine,
            dnnl::convolution_backward_data(data_),
            {{DNNL_ARG_DIFF_DST, convolution_.y(), const_cast<float*>(from)},
             {DNNL_ARG_WEIGHTS, data_.weights_desc(), packed(data_.weights_desc())},
             {DNNL_ARG_DIFF_SRC, convolution_.x(), into},
             {DNNL_ARG_SCRATCHPAD, data_.scratchpad_desc(), scratch}}};
  }

  void bind_backward(float* input, std::byte* scratch) {
    if (wants_input_gradient_) {
      run_data_ =
          is_transposed() ? bound_forward(dy(), dx(), scratch) : bound_data(dy(), dx(), scratch);
    }
    weight_gradient_.bind(context().onednn.engine, is_transposed() ? dy() : input,
                          is_transposed() ? input : dy(), gradient(0),
                          convolution_.bias ? gradient(1) : nullptr, scratch);
  }

  const Roles roles_;
  const std::string name_;
  const bool wants_input_gradient_;
  const std::int64_t output_elements_;
  JoinedGroups joined_;
  Convolution convolution_;
  dnnl::convolution_forward::primitive_desc forward_;
  dnnl::convolution_backward_data::primitive_desc data_;
  WeightGradient weight_gradient_;
  BoundPrimitive run_forward_;
  BoundPrimitive run_data_;
};

}  // namespace syncopate
