// Computes the constants of an ONNX file that nodes make from other constants, or from shapes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "deploy/onnx/onnx_constants.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;
using Folded = std::optional<OnnxConstant>;

// A node that may compute a constant.
struct FoldedNode {
  const OnnxConstants& constants;
  const NodeProto& node;
  const OnnxShapeOf& shape_of;
  OnnxAttributes attributes;

  const OnnxConstant* input(int index) const {
    return index < node.input_size() ? constants.find(node.input(index)) : nullptr;
  }
  OnnxOrigin origin(int index) const { return constants.origin(node, index); }
};

OnnxConstant list_of(std::vector<double> numbers) {
  const auto size = static_cast<std::int64_t>(numbers.size());
  return {.shape = {size}, .is_float = false, .numbers = std::move(numbers)};
}

// Returns the product of the sides; none if it is large or a side is negative.
std::optional<std::int64_t> small_product(const std::vector<double>& sides) {
  double product = 1.0;
  for (const double side : sides) {
    if (!(side >= 0.0)) return std::nullopt;
    product *= side;
  }
  if (!(product <= static_cast<double>(kMostFoldedElements))) return std::nullopt;
  return static_cast<std::int64_t>(product);
}

// Returns a constant that is to have elements of another one.
OnnxConstant part_of(const OnnxConstant& whole) {
  OnnxConstant part = whole;
  part.stored = nullptr;
  part.is_transposed = false;
  part.numbers.clear();
  return part;
}

// Notes that a part has only some of the elements that its whole has in order.
void narrow_to(OnnxConstant& part, std::ptrdiff_t begin, std::ptrdiff_t end) {
  part.end = part.first + std::max(begin, end);
  part.first += begin;
}

Shape to_shape(const std::vector<double>& sides) { return {sides.begin(), sides.end()}; }

Folded constant_of(const FoldedNode& at) {
  if (const auto* value = at.attributes.find("value")) {
    return OnnxConstant{.shape = at.constants.file().shape_of(value->t()),
                        .is_float = OnnxFile::is_float(value->t()),
                        .stored = &value->t()};
  }
  if (at.attributes.has("value_int")) {
    OnnxConstant one = list_of({static_cast<double>(at.attributes.integer("value_int", 0))});
    one.shape.clear();
    return one;
  }
  if (at.attributes.has("value_float")) {
    return OnnxConstant{.shape = {}, .numbers = {at.attributes.number("value_float", 0.0F)}};
  }
  if (at.attributes.has("value_floats")) {
    const std::vector<float> values = at.attributes.numbers("value_floats");
    OnnxConstant list = list_of({values.begin(), values.end()});
    list.is_float = true;
    return list;
  }
  if (at.attributes.has("value_ints")) {
    const std::vector<std::int64_t> values = at.attributes.integers("value_ints");
    return list_of({values.begin(), values.end()});
  }
  return std::nullopt;
}

Folded fold_constant(const FoldedNode& at) {
  Folded folded = constant_of(at);
  if (!folded || !folded->is_float) return folded;
  folded->constant_node = at.node.output(0);
  folded->end = num_elements(folded->shape);
  return folded;
}

Folded fold_constant_of_shape(const FoldedNode& at) {
  const OnnxConstant* shape = at.input(0);
  const auto sides = shape != nullptr ? at.constants.numbers(*shape) : std::nullopt;
  const auto size = sides ? small_product(*sides) : std::nullopt;
  if (!size) return std::nullopt;
  OnnxConstant all{.shape = to_shape(*sides)};
  double value = 0.0;
  if (const auto* element = at.attributes.find("value")) {
    all.is_float = OnnxFile::is_float(element->t());
    const auto read = at.constants.numbers({.shape = at.constants.file().shape_of(element->t()),
                                            .is_float = all.is_float,
                                            .stored = &element->t()});
    if (!read || read->size() != 1) return std::nullopt;
    value = read->front();
  }
  all.numbers.assign(static_cast<std::size_t>(*size), value);
  return all;
}

Folded fold_expand(const FoldedNode& at) {
  const OnnxConstant* value = at.input(0);
  const OnnxConstant* shape = at.input(1);
  if (value == nullptr || shape == nullptr) return std::nullopt;
  const auto from = at.constants.numbers(*value);
  const auto sides = at.constants.numbers(*shape);
  const auto size = sides ? small_product(*sides) : std::nullopt;
  if (!from || !size) return std::nullopt;
  if (to_shape(*sides) == value->shape) return *value;
  // Of a list of one number, Expand by [1] is the list.
  if (sides->size() == 1 && sides->front() == 1.0 && value->shape.size() == 1) return *value;
  if (from->size() != 1 || at.origin(0) != OnnxOrigin::kFixed) return std::nullopt;
  OnnxConstant all{.shape = to_shape(*sides), .is_float = value->is_float};
  all.numbers.assign(static_cast<std::size_t>(*size), from->front());
  return all;
}

Folded fold_concat(const FoldedNode& at) {
  if (at.node.input_size() == 1 && at.input(0) != nullptr) return *at.input(0);
  OnnxConstant all = list_of({});
  for (int i = 0; i < at.node.input_size(); ++i) {
    const OnnxConstant* part = at.input(i);
    if (part == nullptr || part->shape.size() != 1) return std::nullopt;
    if (at.origin(i) != OnnxOrigin::kFixed) return std::nullopt;
    const auto part_numbers = at.constants.numbers(*part);
    if (!part_numbers) return std::nullopt;
    all.is_float = part->is_float;
    all.numbers.insert(all.numbers.end(), part_numbers->begin(), part_numbers->end());
    if (static_cast<std::int64_t>(all.numbers.size()) > kMostFoldedElements) return std::nullopt;
  }
  all.shape = {static_cast<std::int64_t>(all.numbers.size())};
  return all;
}

Folded fold_gather(const FoldedNode& at) {
  const OnnxConstant* list = at.input(0);
  const OnnxConstant* indices = at.input(1);
  if (list == nullptr || indices == nullptr || list->shape.size() != 1) return std::nullopt;
  const auto from = at.constants.numbers(*list);
  const auto positions = at.constants.numbers(*indices);
  if (!from || !positions) return std::nullopt;
  OnnxConstant taken = part_of(*list);
  taken.shape = indices->shape;
  taken.is_in_order = false;
  std::ptrdiff_t least = std::ssize(*from);
  std::ptrdiff_t most = -1;
  const auto size = static_cast<double>(from->size());
  for (const double index : *positions) {
    const double position = index < 0.0 ? index + size : index;
    if (!(position >= 0.0 && position < size)) return std::nullopt;
    const auto element = static_cast<std::ptrdiff_t>(position);
    taken.numbers.push_back((*from)[static_cast<std::size_t>(element)]);
    least = std::min(least, element);
    most = std::max(most, element);
  }
  if (list->is_in_order && most >= 0) narrow_to(taken, least, most + 1);
  return taken;
}

// Of a list, or the rows of a matrix: PyTorch reverses the pairs of a Pad by a step of -1.
Folded fold_slice(const FoldedNode& at) {
  const OnnxConstant* list = at.input(0);
  if (list == nullptr || at.node.input_size() < 3) return std::nullopt;
  if (list->shape.size() != 1 && list->shape.size() != 2) return std::nullopt;
  const auto from = at.constants.numbers(*list);
  const auto begin = at.constants.number(at.node.input(1));
  const auto end = at.constants.number(at.node.input(2));
  const auto axis = at.node.input_size() > 3 ? at.constants.number(at.node.input(3)) : 0.0;
  const auto step = at.node.input_size() > 4 ? at.constants.number(at.node.input(4)) : 1.0;
  if (!from || !begin || !end || !axis || (step != 1.0 && step != -1.0)) return std::nullopt;
  if (*axis != 0.0 && *axis + static_cast<double>(list->shape.size()) != 0.0) return std::nullopt;
  const auto size = static_cast<double>(list->shape[0]);
  // Source: Slice of the ONNX operators: positions are clamped to [0, size], and to [-1, size - 1]
  // for a negative step.
  const double least = *step < 0.0 ? -1.0 : 0.0;
  const auto position = [&](double index) {
    return static_cast<std::ptrdiff_t>(
        std::clamp(index < 0.0 ? index + size : index, least, size + least));
  };
  OnnxConstant part = part_of(*list);
  const std::ptrdiff_t width = list->shape.size() == 2 ? list->shape[1] : 1;
  const auto advance = static_cast<std::ptrdiff_t>(*step);
  const std::ptrdiff_t first = position(*begin);
  const std::ptrdiff_t last = position(*end);
  for (std::ptrdiff_t row = first; advance > 0 ? row < last : row > last; row += advance) {
    part.numbers.insert(part.numbers.end(), from->begin() + row * width,
                        from->begin() + (row + 1) * width);
  }
  if (list->is_in_order) {
    const bool is_forward = advance > 0;
    narrow_to(part, (is_forward ? first : last + 1) * width,
              (is_forward ? last : first + 1) * width);
  }
  part.is_in_order = list->is_in_order && advance > 0;
  part.shape[0] = width == 0 ? 0 : static_cast<std::int64_t>(part.numbers.size()) / width;
  return part;
}

// Reshape, Squeeze and Unsqueeze: other sides for the same elements.
Folded fold_reshape(const FoldedNode& at) {
  const OnnxConstant* value = at.input(0);
  if (value == nullptr || value->is_transposed) return std::nullopt;
  OnnxConstant other = *value;
  const auto list = at.node.input_size() > 1 ? at.constants.integers(at.node.input(1))
                                             : at.attributes.integers("axes");
  if (!list) return std::nullopt;
  if (at.node.op_type() == "Unsqueeze") {
    const auto rank = static_cast<std::int64_t>(value->shape.size() + list->size());
    std::vector<std::int64_t> axes = *list;
    for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
    std::ranges::sort(axes);
    for (const std::int64_t axis : axes) {
      if (axis < 0 || axis > static_cast<std::int64_t>(other.shape.size())) return std::nullopt;
      other.shape.insert(other.shape.begin() + axis, 1);
    }
    return other;
  }
  if (at.node.op_type() == "Squeeze") {
    const auto ones = static_cast<std::size_t>(std::ranges::count(value->shape, 1));
    if (!list->empty() && list->size() != ones) return std::nullopt;
    std::erase(other.shape, 1);
    return other;
  }
  Shape shape = *list;
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && !open) {
      open = i;
    } else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known)) {
      return std::nullopt;
    }
  }
  const std::int64_t elements = num_elements(value->shape);
  if (open && known > 0) {
    shape[*open] = elements / known;
    known *= shape[*open];
  }
  if (known != elements) return std::nullopt;
  other.shape = std::move(shape);
  return other;
}

Folded fold_transpose(const FoldedNode& at) {
  const OnnxConstant* value = at.input(0);
  const std::vector<std::int64_t> order = at.attributes.integers("perm");
  if (value == nullptr || value->shape.size() != 2 ||
      (!order.empty() && order != std::vector<std::int64_t>{1, 0})) {
    return std::nullopt;
  }
  OnnxConstant other = *value;
  other.is_in_order = false;
  std::swap(other.shape[0], other.shape[1]);
  if (value->stored == nullptr || !value->is_float) {  // only floats are read in another order
    const auto from = at.constants.numbers(*value);
    if (!from) return std::nullopt;
    other.stored = nullptr;
    other.numbers.resize(from->size());
    const auto rows = static_cast<std::size_t>(value->shape[0]);
    const auto columns = static_cast<std::size_t>(value->shape[1]);
    for (std::size_t i = 0; i < from->size(); ++i) {
      other.numbers[i % columns * rows + i / columns] = (*from)[i];
    }
    return other;
  }
  if (value->shape != at.constants.file().shape_of(*value->stored) || value->is_transposed)
    return std::nullopt;
  other.is_transposed = true;
  return other;
}

Folded fold_cast(const FoldedNode& at) {
  const OnnxConstant* value = at.input(0);
  if (value == nullptr) return std::nullopt;
  bool is_float = true;  // CastLike is applied to floats alone
  if (at.node.op_type() == "Cast") {
    is_float = OnnxFile::is_float_type(static_cast<std::int32_t>(at.attributes.integer("to", 0)));
  }
  if (is_float == value->is_float) return *value;
  auto converted = at.constants.numbers(*value);
  if (!converted) return std::nullopt;
  if (!is_float) {
    for (double& each : *converted) each = std::trunc(each);
  }
  OnnxConstant other = part_of(*value);
  other.is_float = is_float;
  other.numbers = *std::move(converted);
  return other;
}

Folded fold_sqrt(const FoldedNode& at) {
  const OnnxConstant* value = at.input(0);
  auto roots = value != nullptr && value->is_float ? at.constants.numbers(*value) : std::nullopt;
  if (!roots || at.origin(0) != OnnxOrigin::kFixed ||
      std::ranges::any_of(*roots, [](double each) { return !(each >= 0.0); })) {
    return std::nullopt;
  }
  for (double& each : *roots) each = std::sqrt(each);
  return OnnxConstant{.shape = value->shape, .numbers = *std::move(roots)};
}

Folded fold_arithmetic(const FoldedNode& at) {
  const OnnxConstant* a = at.input(0);
  const OnnxConstant* b = at.input(1);
  if (a == nullptr || b == nullptr || a->is_float != b->is_float) return std::nullopt;
  for (const int i : {0, 1}) {
    if (at.origin(i) != OnnxOrigin::kFixed) return std::nullopt;
  }
  const auto left = at.constants.numbers(*a);
  const auto right = at.constants.numbers(*b);
  if (!left || !right || left->empty() || right->empty()) return std::nullopt;
  if (a->shape != b->shape && left->size() != 1 && right->size() != 1) return std::nullopt;
  const bool is_of_left = left->size() != right->size() ? left->size() > right->size()
                                                        : a->shape.size() >= b->shape.size();
  OnnxConstant result{.shape = is_of_left ? a->shape : b->shape, .is_float = a->is_float};
  for (std::size_t i = 0; i < std::max(left->size(), right->size()); ++i) {
    const double x = (*left)[left->size() == 1 ? 0 : i];
    const double y = (*right)[right->size() == 1 ? 0 : i];
    double value = 0.0;
    const bool is_sum = at.node.op_type() == "Add" || at.node.op_type() == "Sub";
    const bool is_product = at.node.op_type() == "Mul" || at.node.op_type() == "Div";
    if (std::isnan(x) && ((is_sum && y == 0.0) || (is_product && y == 1.0))) {
      result.numbers.push_back(x);  // the number of samples, unchanged
      continue;
    }
    if (at.node.op_type() == "Add") {
      value = x + y;
    } else if (at.node.op_type() == "Sub") {
      value = x - y;
    } else if (at.node.op_type() == "Mul") {
      value = x * y;
    } else if (at.node.op_type() == "Div") {
      value = a->is_float ? x / y : std::trunc(x / y);
    } else {
      value = std::pow(x, y);
    }
    if (!std::isfinite(value)) return std::nullopt;
    result.numbers.push_back(value);
  }
  return result;
}

Folded fold_shape(const FoldedNode& at) {
  if (at.node.input_size() != 1) return std::nullopt;
  const OnnxConstant* value = at.input(0);
  const std::optional<Shape> shape =
      value != nullptr ? std::optional(value->shape) : at.shape_of(at.node.input(0));
  if (!shape) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto position = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  const std::int64_t begin = position(at.attributes.integer("start", 0));
  const std::int64_t end = std::max(begin, position(at.attributes.integer("end", rank)));
  OnnxConstant sides = list_of({shape->begin() + begin, shape->begin() + end});
  std::ranges::replace(sides.numbers, -1.0, std::numeric_limits<double>::quiet_NaN());
  return sides;
}

Folded fold_identity(const FoldedNode& at) {
  if (at.input(0) == nullptr) return std::nullopt;
  OnnxConstant same = *at.input(0);
  const std::string& output = at.node.output(0);
  const bool is_parameter = at.constants.origins().is_parameter_of_identity(output);
  if (!same.source.empty() && is_parameter) same.source = output;
  return same;
}

struct FoldRow {
  std::string_view op;
  Folded (*fold)(const FoldedNode&);
};
constexpr std::array kFoldRows = {FoldRow{"Constant", fold_constant},
                                  FoldRow{"Shape", fold_shape},
                                  FoldRow{"ConstantOfShape", fold_constant_of_shape},
                                  FoldRow{"Identity", fold_identity},
                                  FoldRow{"Expand", fold_expand},
                                  FoldRow{"Concat", fold_concat},
                                  FoldRow{"Gather", fold_gather},
                                  FoldRow{"Slice", fold_slice},
                                  FoldRow{"Reshape", fold_reshape},
                                  FoldRow{"Squeeze", fold_reshape},
                                  FoldRow{"Unsqueeze", fold_reshape},
                                  FoldRow{"Transpose", fold_transpose},
                                  FoldRow{"Cast", fold_cast},
                                  FoldRow{"CastLike", fold_cast},
                                  FoldRow{"Sqrt", fold_sqrt},
                                  FoldRow{"Add", fold_arithmetic},
                                  FoldRow{"Sub", fold_arithmetic},
                                  FoldRow{"Mul", fold_arithmetic},
                                  FoldRow{"Div", fold_arithmetic},
                                  FoldRow{"Pow", fold_arithmetic}};

}  // namespace

Folded folded_node(const OnnxConstants& constants, const NodeProto& node,
                   const OnnxShapeOf& shape_of) {
  const auto* const row = std::ranges::find(kFoldRows, node.op_type(), &FoldRow::op);
  if (row == kFoldRows.end()) return std::nullopt;
  return row->fold({constants, node, shape_of, OnnxAttributes(constants.file(), node)});
}

}  // namespace syncopate
