// Adds the nodes that change the sides of a value, or read it along one axis: upsampling, softmax,
// reshape, transpose, mean and products of matrices.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/errors.h"
#include "models/graph/graph.h"

namespace syncopate {
namespace {

constexpr int kLargestScale = 128;

}  // namespace

NodeId GraphBuilder::upsample2d(NodeId x, UpsampleOp operation) {
  const Shape in = map_shape(x, "upsample2d");
  if (operation.scale < 2 || operation.scale > kLargestScale) {
    throw ShapeError(fmt::format("upsample2d: found a scale of {}; expected 2 to {}",
                                 operation.scale, kLargestScale));
  }
  return append("", operation, {x}, {in[0] * operation.scale, in[1] * operation.scale, in[2]});
}

NodeId GraphBuilder::slice(NodeId x, int first, int count) {
  Shape out = shape(x);
  if (first < 0 || count < 1 || first > out.back() - count) {
    throw ShapeError(fmt::format("slice: found {} channels from {} on of {}; expected some of them",
                                 count, first, to_string(out)));
  }
  require_one_order(std::array{x}, true, "slice");
  out.back() = count;
  return append("", SliceOp{first}, {x}, std::move(out));
}

NodeId GraphBuilder::softmax(NodeId x) { return append("", SoftmaxOp{}, {x}, Shape(shape(x))); }

NodeId GraphBuilder::reshape(NodeId x, Shape shape) {
  const Shape& in = this->shape(x);
  // The product of many sides may not fit into 64 bits.
  std::int64_t left = num_elements(in);
  for (const std::int64_t side : shape) left = side < 1 || left % side != 0 ? 0 : left / side;
  if (left != 1 || (shape.size() != 1 && shape.size() != 3)) {
    throw ShapeError(fmt::format(
        "reshape: found {} to become {}; expected [H, W, C] or [F] with as many elements",
        to_string(in), to_string(shape)));
  }
  require_one_order(std::array{x}, true, "reshape");
  return append("", ReshapeOp{}, {x}, std::move(shape));
}

NodeId GraphBuilder::transpose(NodeId x, std::array<int, 3> order) {
  const Shape in = map_shape(x, "transpose");
  std::array<int, 3> sorted = order;
  std::ranges::sort(sorted);
  if (sorted != std::array{0, 1, 2}) {
    throw ShapeError(
        fmt::format("transpose: found the order {}, {}, {}; expected each of 0, 1, 2 once",
                    order[0], order[1], order[2]));
  }
  const auto side = [&](int axis) { return in[static_cast<std::size_t>(axis)]; };
  return append("", TransposeOp{order}, {x}, {side(order[0]), side(order[1]), side(order[2])});
}

NodeId GraphBuilder::reduce_mean(NodeId x, std::span<const int> axes) {
  Shape out = shape(x);
  ReduceMeanOp operation;
  for (const int axis : axes) {
    if (axis < 0 || axis >= static_cast<int>(out.size())) {
      throw ShapeError(fmt::format("reduce_mean: found the axis {} of {}; expected 0 to {}", axis,
                                   to_string(shape(x)), out.size() - 1));
    }
    operation.axes[static_cast<std::size_t>(axis)] = true;
    out[static_cast<std::size_t>(axis)] = 1;
  }
  if (axes.empty()) throw ShapeError("reduce_mean: found no axes; expected one or more");
  return append("", operation, {x}, std::move(out));
}

NodeId GraphBuilder::matmul(NodeId a, NodeId b) {
  const Shape left = shape(a);
  const Shape right = shape(b);
  if (left.size() != 3 || right.size() != 3 || left[0] != right[0] || left[2] != right[1]) {
    throw ShapeError(fmt::format("matmul: found {} and {}; expected [B, M, K] and [B, K, N]",
                                 to_string(left), to_string(right)));
  }
  return append("", MatmulOp{}, {a, b}, {left[0], left[1], right[2]});
}

}  // namespace syncopate
