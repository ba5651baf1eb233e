// Computes the weight gradient of a convolution by oneDNN, and finds the copy of the weight in a
// oneDNN format. Used by ConvolutionGroup (convolution_group.h). Included by .cc files of this
// folder only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "models/backend/cpu/convolution.h"
#include "models/backend/cpu/group.h"
#include "models/backend/cpu/joined_groups.h"
#include "models/backend/cpu/onednn.h"

namespace syncopate {

// Returns the address of the copy of a convolution's weight in the oneDNN format `format`.
// PackedWeights keeps the copy current. parameter: the index of the weight in Graph::parameters.
// joined: how groups of the convolution are joined.
float* packed_weight(const GroupContext& context, int parameter, const JoinedGroups& joined,
                     const Convolution& convolution, const dnnl::memory::desc& format);

// Computes the weight gradient of one lane's samples. Used by one thread at a time. Throws
// dnnl::error if oneDNN has no kernel for the convolution.
class WeightGradient {
 public:
  void describe(const dnnl::engine& engine, const Convolution& convolution,
                const JoinedGroups& joined, ConvAlgorithm algorithm);
  // Returns oneDNN's name of the kernel, such as "jit:avx2".
  std::string kernel() const { return weights_.impl_info_str(); }
  // Returns the bytes of scratch memory for bind(). The memory holds the gradient in oneDNN's
  // format, the gradient with padded channels, the gradient with joined groups, the maps in plain
  // format if the kernel needs them, and oneDNN's scratchpad.
  std::size_t scratch_bytes() const;
  // Sets the memory that run() uses. x: the convolution's input. dy: the gradient of the
  // convolution's output. gradient: receives the weight gradient, [K, R, S, C / groups].
  // bias_gradient: receives the bias gradient, [K]; null for a convolution without bias.
  void bind(const dnnl::engine& engine, float* x, float* dy, float* gradient, float* bias_gradient,
            std::byte* scratch);
  // Computes the weight gradient and the bias gradient, and overwrites the arrays given to bind().
  void run() const;

 private:
  std::size_t packed_bytes() const;
  std::int64_t weight_rows() const;  // K * R * S
  std::size_t padded_bytes() const;
  std::size_t joined_bytes() const;
  std::size_t map_bytes(const dnnl::memory::desc& map) const;

  Convolution convolution_;
  JoinedGroups joined_;
  dnnl::convolution_backward_weights::primitive_desc weights_;
  float* gradient_ = nullptr;
  float* padded_gradient_ = nullptr;  // [K, R, S, a block of channels]
  float* joined_gradient_ = nullptr;
  Maps maps_ = Maps::kBlocked;
  BoundPrimitive run_x_;   // converts x to the plain format; only with Maps::kPlain
  BoundPrimitive run_dy_;  // converts dy to the plain format; only with Maps::kPlain
  BoundPrimitive run_weights_;
  BoundPrimitive run_unpack_;
};

}  // namespace syncopate
