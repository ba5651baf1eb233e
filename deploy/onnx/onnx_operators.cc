#include "deploy/onnx/onnx_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {

const OnnxValue& OnnxReading::value(const Node& node, int index) const {
  const OnnxValue& found = pending_value(node, index);
  if (found.pad != 0) {
    throw UsageError("of a map with a Pad; expected a convolution or a pool behind the Pad");
  }
  if (found.repeated_rows != 1) {
    throw UsageError("of a map with repeated rows; expected its columns to be repeated, too");
  }
  return found;
}

const OnnxValue& OnnxReading::pending_value(const Node& node, int index) const {
  const auto found = index < node.input_size() ? values.find(node.input(index)) : values.end();
  if (found == values.end()) {
    throw UsageError(fmt::format("whose input {} is constant", index));
  }
  return found->second;
}

void OnnxReading::set_like(const Node& node, const OnnxValue& from, NodeId id) {
  OnnxValue result = from;
  result.node = id;
  result.is_positive = false;
  set(node, std::move(result));
}

bool OnnxRow::supports(std::string_view attribute) const {
  for (std::string_view rest = attributes; !rest.empty();) {
    const std::string_view known = rest.substr(0, rest.find(' '));
    if (known == attribute) return true;
    rest.remove_prefix(std::min(known.size() + 1, rest.size()));
  }
  return false;
}

const OnnxRow* find_onnx_row(std::string_view op) {
  for (const auto rows : {element_rows, layer_rows, window_rows, shape_rows, resize_rows}) {
    const auto row = std::ranges::find(rows(), op, &OnnxRow::op);
    if (row != rows().end()) return &*row;
  }
  return nullptr;
}

}  // namespace syncopate
