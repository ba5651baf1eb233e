// The oneDNN primitive descriptors of the three passes of a convolution. Included by .cc files of
// this folder only.
#pragma once

#include "models/backend/cpu/algorithm_table.h"
#include "models/backend/cpu/onednn.h"

namespace syncopate {

struct Convolution {
  ConvProblem problem;
  int block = 16;             // channels per block of the activations
  bool planar_input = false;  // the input x is [N, C, H, W] instead of blocked
  bool bias = false;
  bool relu = false;  // the ReLU is applied by the forward pass

  dnnl::memory::dims weight_dims() const {
    return {problem.k, problem.c, problem.kernel_h, problem.kernel_w};
  }
  dnnl::memory::desc x() const;
  dnnl::memory::desc y() const;

  // Return descriptors in which oneDNN chooses the format of the weights and the caller supplies
  // scratch memory. Throw dnnl::error when oneDNN has no such kernel.
  dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine,
                                                    ConvAlgorithm algorithm) const;
  dnnl::convolution_backward_data::primitive_desc backward_data(const dnnl::engine& engine,
                                                                ConvAlgorithm algorithm) const;
  dnnl::convolution_backward_weights::primitive_desc backward_weights(
      const dnnl::engine& engine, ConvAlgorithm algorithm) const;

 private:
  dnnl::convolution_forward::primitive_desc forward_with(
      const dnnl::engine& engine, ConvAlgorithm algorithm,
      const dnnl::primitive_attr& attributes) const;
  dnnl::memory::desc bias_format() const;
  dnnl::memory::dims strides() const { return {problem.stride, problem.stride}; }
  dnnl::memory::dims padding() const { return {problem.pad, problem.pad}; }
};

}  // namespace syncopate
