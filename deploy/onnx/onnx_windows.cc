// Reads the sizes and paddings of the windows of convolutions and pools in an ONNX file.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "deploy/onnx/onnx_operators.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

void check_window(const OnnxAttributes& attributes) {
  refuse_dilation(attributes);
  one_size(attributes, "strides", 1);
  if (!attributes.has("kernel_shape")) throw UsageError("without kernel_shape");
  one_size(attributes, "kernel_shape", 1);
}

// Returns the window's size, stride and padding of a pool.
MaxPoolOp window_of(const OnnxReading& net, const NodeProto& node, const OnnxValue& x,
                    const OnnxAttributes& attributes) {
  const Shape sides = net.forms.shape_of(x);
  const Shape map = {sides[2], sides[3]};
  const int window = one_size(attributes, "kernel_shape", 1);
  const int stride = one_size(attributes, "strides", 1);
  const std::array<std::int64_t, 2> kernel = {window, window};
  Padding pad = onnx_padding(attributes, map, kernel, stride);
  if (x.pad != 0) {
    if (node.op_type() == "MaxPool" && !x.is_positive) {
      throw UsageError("of a map with a Pad of zeros; expected an activation such as Relu before");
    }
    if (pad != 0) throw UsageError("with pads, of a map with a Pad");
    pad = x.pad;
  }
  if (!pad.is_one_number()) {
    throw UsageError(fmt::format("with pads {}, {}, {}, {}; expected equal ones", pad.top, pad.left,
                                 pad.bottom, pad.right));
  }
  if (attributes.integer("ceil_mode", 0) != 0) {
    for (std::size_t i = 0; i < 2; ++i) {
      if ((net.forms.map_of(x)[i] + 2 * pad.top - window) % stride == 0) continue;
      throw UsageError("with ceil_mode that adds a window");
    }
  }
  if (node.op_type() == "AveragePool" && pad.top > 0 && x.pad == 0 &&
      attributes.integer("count_include_pad", 0) == 0) {
    throw UsageError("with count_include_pad 0 and pads");
  }
  return {.window = window, .stride = stride, .pad = pad.top};
}

void add_max_pool(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  OnnxValue x = net.forms.as_map(net.pending_value(node, 0));
  const NodeId id = net.build.max_pool(x.node, window_of(net, node, x, attributes));
  x.pad = {};
  net.set_like(node, x, id);
}

void add_average_pool(OnnxReading& net, const NodeProto& node, const OnnxAttributes& attributes) {
  OnnxValue x = net.forms.as_map(net.pending_value(node, 0));
  const MaxPoolOp op = window_of(net, node, x, attributes);
  // PyTorch writes an adaptive pool to the size that the map has as a window of one pixel. A Pad in
  // front of it belongs to the next layer.
  if (op.window == 1 && op.stride == 1 && (op.pad == 0 || x.pad != 0)) {
    return net.set(node, OnnxValue(x));
  }
  x.pad = {};
  net.set_like(
      node, x,
      net.build.average_pool(x.node, {.window = op.window, .stride = op.stride, .pad = op.pad}));
}

void add_global_pool(OnnxReading& net, const NodeProto& node,
                     const OnnxAttributes& /*attributes*/) {
  const OnnxValue x = net.forms.as_map(net.value(node, 0));
  net.set(node, {.node = net.build.global_average_pool(x.node), .form = OnnxForm::kPixelFirst});
}

}  // namespace

int one_size(const OnnxAttributes& attributes, std::string_view name, int otherwise) {
  const std::vector<std::int64_t> sizes = attributes.integers(name);
  if (sizes.empty()) return otherwise;
  if (sizes.size() != 2) throw UsageError(fmt::format("of {} dimensions", sizes.size()));
  if (sizes[0] != sizes[1]) {
    throw UsageError(fmt::format("with {} {}x{}", name, sizes[0], sizes[1]));
  }
  return to_int(sizes[0], 1, kLargestOnnxWindow, name);
}

void refuse_dilation(const OnnxAttributes& attributes) {
  for (const std::int64_t dilation : attributes.integers("dilations")) {
    if (dilation != 1) throw UsageError(fmt::format("with dilations of {}", dilation));
  }
}

Padding onnx_padding(const OnnxAttributes& attributes, const Shape& map,
                     std::span<const std::int64_t> kernel, std::int64_t stride) {
  const std::string kind = attributes.text("auto_pad", "NOTSET");
  std::array<std::int64_t, 4> sides{};  // top, left, bottom, right
  if (kind == "NOTSET") {
    const std::vector<std::int64_t> pads = attributes.integers("pads");
    if (!pads.empty() && pads.size() != 4) throw UsageError("without four pads");
    std::ranges::copy(pads, sides.begin());
  } else if (kind == "SAME_UPPER" || kind == "SAME_LOWER") {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t windows = (map[i] - 1) / stride + 1;
      const std::int64_t all =
          std::max<std::int64_t>((windows - 1) * stride + kernel[i] - map[i], 0);
      sides[i] = kind == "SAME_UPPER" ? all / 2 : all - all / 2;
      sides[i + 2] = all - sides[i];
    }
  } else if (kind != "VALID") {
    throw UsageError("with auto_pad " + shown_name(kind));
  }
  const auto side = [](std::int64_t value) { return to_int(value, 0, kLargestOnnxWindow, "pads"); };
  return {side(sides[0]), side(sides[1]), side(sides[2]), side(sides[3])};
}

std::span<const OnnxRow> window_rows() {
  static constexpr OnnxRow kRows[] = {
      {"MaxPool", 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
       add_max_pool, check_window},
      {"AveragePool", 1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
       add_average_pool, check_window},
      {"GlobalAveragePool", 1, "", add_global_pool}};
  return kRows;
}

}  // namespace syncopate
