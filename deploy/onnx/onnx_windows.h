// Reads the sizes and paddings of the windows of convolutions and pools in an ONNX file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "deploy/onnx/onnx_attributes.h"
#include "models/graph/graph.h"

namespace syncopate {

inline constexpr std::int64_t kLargestOnnxWindow = 1 << 7;

// Returns the common value of an attribute with two equal numbers, such as the strides; `otherwise`
// if the attribute is absent. Throws UsageError unless the attribute has two equal numbers from 1
// to kLargestOnnxWindow.
int one_size(const OnnxAttributes& attributes, std::string_view name, int otherwise);
// Throws UsageError unless all dilations are 1.
void refuse_dilation(const OnnxAttributes& attributes);
// Returns the padding of a convolution or a pool. map: the height and width of its input. Throws
// UsageError for an unknown value of auto_pad.
Padding onnx_padding(const OnnxAttributes& attributes, const Shape& map,
                     std::span<const std::int64_t> kernel, std::int64_t stride);

}  // namespace syncopate
