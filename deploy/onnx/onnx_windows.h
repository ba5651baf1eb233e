// Sizes and paddings of the windows of convolutions and pools in an ONNX file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "deploy/onnx/onnx_attributes.h"
#include "models/graph/graph.h"

namespace syncopate {

inline constexpr std::int64_t kLargestOnnxWindow = 1 << 7;

// Returns the only number of a list of two, such as the strides; `otherwise` for an absent list.
// Throws UsageError unless both are equal and 1 to kLargestOnnxWindow.
int one_size(const OnnxAttributes& attributes, std::string_view name, int otherwise);
// Throws UsageError unless the dilations are 1.
void refuse_dilation(const OnnxAttributes& attributes);
// Returns the padding of a convolution or a pool. Throws UsageError for a kind that is not known.
Padding onnx_padding(const OnnxAttributes& attributes, const Shape& map,
                     std::span<const std::int64_t> kernel, std::int64_t stride);

}  // namespace syncopate
