// The oneDNN primitive descriptors of the three passes of a convolution. Included by .cc files of
// this folder only.
#pragma once

#include <cstdint>

#include "models/backend/cpu/algorithm_table.h"
#include "models/backend/cpu/onednn.h"

namespace syncopate {

// The formats of a convolution's input x and output y. kBlocked: [N, ceil(C / B), H, W, B] with B
// channels per block, except that x is [N, C, H, W] if planar_input is set. kPlain: [N, H, W, C].
enum class Maps : std::uint8_t { kBlocked, kPlain };

struct Convolution {
  ConvProblem problem;
  int block = 16;             // channels per block of the activations
  bool planar_input = false;  // the input x is [N, C, H, W] instead of blocked
  bool bias = false;
  bool relu = false;  // the ReLU is applied by the forward pass

  // Returns whether the input channels are padded to a whole block, because oneDNN has only slow
  // reference code for fewer channels. The padding consists of zeros, in the input (as in every
  // blocked map) and in the packed weights.
  bool pads_channels() const { return !planar_input && problem.groups == 1 && problem.c < block; }
  std::int64_t channels() const { return pads_channels() ? block : problem.c; }
  // Returns the format [K, R, S, C / groups] of the weight. The arena's weight has this format,
  // too, unless groups of the convolution are joined (JoinedGroups in joined_groups.h).
  dnnl::memory::desc plain_format() const { return plain_format_of(problem.c); }
  // Returns the format [K, R, S, channels() / groups] of the weight, where channels of zeros follow
  // the weight's channels if pads_channels().
  dnnl::memory::desc padded_plain_format() const { return plain_format_of(channels()); }
  // Converts `format`, which describes the memory of weights with padded channels, to a format of
  // the same memory that has only the unpadded channels. A reorder to the returned format also
  // writes the zeros of the padding. To convert back, reorder from `format` to
  // padded_plain_format(): a reorder from the returned format gives wrong values unless `format`
  // has blocks of `block` channels.
  dnnl::memory::desc without_padding(dnnl::memory::desc format) const;
  dnnl::memory::desc x(Maps maps = Maps::kBlocked) const;
  dnnl::memory::desc y(Maps maps = Maps::kBlocked) const;

  // Return the primitive descriptors of the three passes. oneDNN chooses the format of the weights;
  // the caller supplies scratch memory. Throw dnnl::error when oneDNN has no kernel for the pass.
  dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine,
                                                    ConvAlgorithm algorithm) const;
  dnnl::convolution_backward_data::primitive_desc backward_data(const dnnl::engine& engine,
                                                                ConvAlgorithm algorithm) const;
  dnnl::convolution_backward_weights::primitive_desc backward_weights(
      const dnnl::engine& engine, ConvAlgorithm algorithm, Maps maps = Maps::kBlocked) const;

 private:
  dnnl::convolution_forward::primitive_desc forward_with(const dnnl::engine& engine,
                                                         ConvAlgorithm algorithm,
                                                         const dnnl::primitive_attr& attributes,
                                                         Maps maps = Maps::kBlocked) const;
  dnnl::memory::desc bias_format() const;
  dnnl::memory::desc plain_format_of(std::int64_t channels) const;
  dnnl::memory::dims weight_dims(std::int64_t channels) const;
  dnnl::memory::dims strides() const { return {problem.stride, problem.stride}; }
  dnnl::memory::dims first_padding() const { return {problem.pad.top, problem.pad.left}; }
  dnnl::memory::dims last_padding() const { return {problem.pad.bottom, problem.pad.right}; }
};

}  // namespace syncopate
