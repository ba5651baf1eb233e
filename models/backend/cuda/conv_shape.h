// The convolution that a library computes for a layer. For the first layer, samples and weights are
// first folded to more channels, because cuDNN's engines for few channels are slow or missing.
#pragma once

#include <cstdint>
#include <optional>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/operations.h"
#include "models/graph/graph.h"

namespace syncopate::cuda {

// Returns the shape to which n samples of an input are folded for the convolutions that read them;
// nullopt if the samples are not folded. In fp16, channels of zeros are added up to 4 channels; in
// bf16, up to 8 channels. In bf16, if the only reader is a convolution with stride 2 and without
// groups, and samples have at most 4 channels, 2 x 2 pixels become one pixel with a multiple of 8
// channels. The folded map then also contains the convolution's padding. On an H200 with PyTorch,
// ResNet-50's first layer takes 1.1 ms for forward and backward pass with this shape, 2.6 ms
// without.
std::optional<FoldShape> sample_fold(const Graph& graph, NodeId input, std::int64_t n,
                                     Precision precision);

// Returns the shape to which the weights of `conv`, [K, R, S, C], are folded if `conv` reads
// samples that are folded as `samples`. The folded weights are K maps, [K, y_height, y_width,
// y_channels].
FoldShape weight_fold(const Graph& graph, const Node& conv, const FoldShape& samples);

// Returns the shape of the convolution that a library computes for the layer `conv` on n maps.
// samples: the fold of the samples if the layer reads folded samples, otherwise null.
ConvShape conv_shape(const Graph& graph, const Node& conv, std::int64_t n, Precision precision,
                     const FoldShape* samples);

}  // namespace syncopate::cuda
