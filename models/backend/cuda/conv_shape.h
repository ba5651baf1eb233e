// The convolution that a library computes for a layer. The first layer is not convolved as it
// stands: samples have few channels, and cuDNN's engines for few channels are slow or missing.
#pragma once

#include <cstdint>
#include <optional>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/operations.h"
#include "models/graph/graph.h"

namespace syncopate::cuda {

// Returns how the samples of an input are written for the convolutions that read them, or no value
// if they stay as they are; n: samples. Channels of zeros are added up to four in fp16 and up to
// eight in bf16. In bf16, if one convolution of stride 2, without groups, reads samples of at most
// four channels, 2 x 2 pixels become one pixel of a multiple of eight channels, with the
// convolution's padding around the map. On an H200, convolutions of these shapes by PyTorch
// take 1.1 instead of 2.6 ms for ResNet-50's first layer, forward and backward.
std::optional<FoldShape> sample_fold(const Graph& graph, NodeId input, std::int64_t n,
                                     Precision precision);

// Returns how the weights of `conv`, [K, R, S, C], are written where it reads samples that are
// folded so: as K maps, [K, y_height, y_width, y_channels].
FoldShape weight_fold(const Graph& graph, const Node& conv, const FoldShape& samples);

// Returns the convolution of `n` maps for a layer; samples: how they are folded if the layer reads
// them, else null.
ConvShape conv_shape(const Graph& graph, const Node& conv, std::int64_t n, Precision precision,
                     const FoldShape* samples);

}  // namespace syncopate::cuda
