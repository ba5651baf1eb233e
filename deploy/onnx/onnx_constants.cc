#include "deploy/onnx/onnx_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using proto::onnx::NodeProto;

constexpr std::int64_t kMostFoldedElements = std::int64_t{1} << 16;  // of one constant
constexpr std::int64_t kMostFoldedTogether = std::int64_t{1} << 24;  // of all constants

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

bool has_nan(const std::vector<double>& numbers) {
  return std::ranges::any_of(numbers, [](double number) { return std::isnan(number); });
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

}  // namespace

OnnxConstants::OnnxConstants(const OnnxFile& file) : file_(file), origins_(file) {
  for (const auto& tensor : file.graph().initializer()) {
    const auto [at, is_new] = constants_.try_emplace(tensor.name());
    if (!is_new) {
      file.damaged(fmt::format("two tensors have the name {}; expected one of each name",
                               shown_name(tensor.name())));
    }
    at->second = {
        .shape = file.shape_of(tensor), .is_float = OnnxFile::is_float(tensor), .stored = &tensor};
    if (at->second.is_float) at->second.source = tensor.name();
    at->second.end = num_elements(at->second.shape);
  }
}

const OnnxConstant* OnnxConstants::find(const std::string& name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

const OnnxConstant* OnnxConstants::input(const NodeProto& node, int index) const {
  return index < node.input_size() ? find(node.input(index)) : nullptr;
}

OnnxOrigin OnnxConstants::origin(const NodeProto& node, int index) const {
  const OnnxConstant* constant = input(node, index);
  if (constant == nullptr || constant->source.empty()) return OnnxOrigin::kFixed;
  return origins_.of(node, constant->source, num_elements(constant->shape) == 1);
}

OnnxOrigin OnnxConstants::origin_of_weight(const NodeProto& node, int index) const {
  const OnnxConstant* constant = input(node, index);
  if (constant == nullptr || constant->source.empty()) return OnnxOrigin::kFixed;
  return origins_.of(node, constant->source, constant->shape.empty());
}

std::vector<float> OnnxConstants::floats(const OnnxConstant& constant) const {
  if (constant.stored == nullptr) {
    if (has_nan(constant.numbers)) {
      throw UsageError("with the number of samples, which is not fixed, as a weight");
    }
    return {constant.numbers.begin(), constant.numbers.end()};
  }
  std::vector<float> stored = file_.read_floats(*constant.stored);
  if (!constant.is_transposed) return stored;
  const auto rows = static_cast<std::size_t>(constant.shape[0]);
  const auto columns = static_cast<std::size_t>(constant.shape[1]);
  std::vector<float> values(stored.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      values[row * columns + column] = stored[column * rows + row];
    }
  }
  return values;
}

std::optional<std::vector<double>> OnnxConstants::numbers(const OnnxConstant& constant) const {
  if (constant.stored == nullptr) return constant.numbers;
  if (num_elements(constant.shape) > kMostFoldedElements) return std::nullopt;
  if (constant.is_float) {
    const std::vector<float> values = floats(constant);
    return std::vector<double>(values.begin(), values.end());
  }
  if (!OnnxFile::is_integer(*constant.stored)) return std::nullopt;
  const std::vector<std::int64_t> values = file_.read_integers(*constant.stored);
  return std::vector<double>(values.begin(), values.end());
}

std::optional<std::vector<std::int64_t>> OnnxConstants::integers(const std::string& name) const {
  auto whole = sides(name);
  if (whole && std::ranges::find(*whole, kSamples) != whole->end()) return std::nullopt;
  return whole;
}

std::optional<std::vector<std::int64_t>> OnnxConstants::sides(const std::string& name) const {
  const OnnxConstant* constant = find(name);
  if (constant == nullptr || constant->is_float) return std::nullopt;
  const auto values = numbers(*constant);
  if (!values) return std::nullopt;
  std::vector<std::int64_t> whole;
  for (const double value : *values) {
    constexpr double kMost = 9e15;  // whole numbers up to here are exact
    whole.push_back(
        std::isnan(value) ? kSamples : static_cast<std::int64_t>(std::clamp(value, -kMost, kMost)));
  }
  return whole;
}

std::optional<double> OnnxConstants::number(const std::string& name) const {
  const OnnxConstant* constant = find(name);
  if (constant == nullptr || num_elements(constant->shape) != 1) return std::nullopt;
  const auto values = numbers(*constant);
  return values && !std::isnan(values->front()) ? std::optional(values->front()) : std::nullopt;
}

bool OnnxConstants::has_samples(const std::string& name) const {
  const OnnxConstant* constant = find(name);
  return constant != nullptr && has_nan(constant->numbers);
}

OnnxConstants::Folded OnnxConstants::constant(const OnnxAttributes& attributes) const {
  if (const auto* value = attributes.find("value")) {
    return OnnxConstant{.shape = file_.shape_of(value->t()),
                        .is_float = OnnxFile::is_float(value->t()),
                        .stored = &value->t()};
  }
  if (attributes.has("value_int")) {
    OnnxConstant one = list_of({static_cast<double>(attributes.integer("value_int", 0))});
    one.shape.clear();
    return one;
  }
  if (attributes.has("value_float")) {
    return OnnxConstant{.shape = {}, .numbers = {attributes.number("value_float", 0.0F)}};
  }
  if (attributes.has("value_floats")) {
    const std::vector<float> values = attributes.numbers("value_floats");
    OnnxConstant list = list_of({values.begin(), values.end()});
    list.is_float = true;
    return list;
  }
  if (attributes.has("value_ints")) {
    const std::vector<std::int64_t> values = attributes.integers("value_ints");
    return list_of({values.begin(), values.end()});
  }
  return std::nullopt;
}

OnnxConstants::Folded OnnxConstants::of_constant_node(const NodeProto& node,
                                                      const OnnxAttributes& attributes) const {
  Folded folded = constant(attributes);
  if (!folded || !folded->is_float) return folded;
  folded->constant_node = node.output(0);
  folded->end = num_elements(folded->shape);
  return folded;
}

OnnxConstants::Folded OnnxConstants::filled(const NodeProto& node,
                                            const OnnxAttributes& attributes) const {
  const OnnxConstant* shape = input(node, 0);
  const auto sides = shape != nullptr ? numbers(*shape) : std::nullopt;
  const auto size = sides ? small_product(*sides) : std::nullopt;
  if (!size) return std::nullopt;
  OnnxConstant all{.shape = to_shape(*sides)};
  double value = 0.0;
  if (const auto* element = attributes.find("value")) {
    all.is_float = OnnxFile::is_float(element->t());
    const auto read = numbers(
        {.shape = file_.shape_of(element->t()), .is_float = all.is_float, .stored = &element->t()});
    if (!read || read->size() != 1) return std::nullopt;
    value = read->front();
  }
  all.numbers.assign(static_cast<std::size_t>(*size), value);
  return all;
}

OnnxConstants::Folded OnnxConstants::expanded(const NodeProto& node) const {
  const OnnxConstant* value = input(node, 0);
  const OnnxConstant* shape = input(node, 1);
  if (value == nullptr || shape == nullptr) return std::nullopt;
  const auto from = numbers(*value);
  const auto sides = numbers(*shape);
  const auto size = sides ? small_product(*sides) : std::nullopt;
  if (!from || !size) return std::nullopt;
  if (to_shape(*sides) == value->shape) return *value;
  // Of a list of one number, Expand by [1] is the list.
  if (sides->size() == 1 && sides->front() == 1.0 && value->shape.size() == 1) return *value;
  if (from->size() != 1 || origin(node, 0) != OnnxOrigin::kFixed) return std::nullopt;
  OnnxConstant all{.shape = to_shape(*sides), .is_float = value->is_float};
  all.numbers.assign(static_cast<std::size_t>(*size), from->front());
  return all;
}

OnnxConstants::Folded OnnxConstants::joined(const NodeProto& node) const {
  if (node.input_size() == 1 && input(node, 0) != nullptr) return *input(node, 0);
  OnnxConstant all = list_of({});
  for (int i = 0; i < node.input_size(); ++i) {
    const OnnxConstant* part = input(node, i);
    if (part == nullptr || part->shape.size() != 1) return std::nullopt;
    if (origin(node, i) != OnnxOrigin::kFixed) return std::nullopt;
    const auto part_numbers = numbers(*part);
    if (!part_numbers) return std::nullopt;
    all.is_float = part->is_float;
    all.numbers.insert(all.numbers.end(), part_numbers->begin(), part_numbers->end());
    if (static_cast<std::int64_t>(all.numbers.size()) > kMostFoldedElements) return std::nullopt;
  }
  all.shape = {static_cast<std::int64_t>(all.numbers.size())};
  return all;
}

OnnxConstants::Folded OnnxConstants::gathered(const NodeProto& node) const {
  const OnnxConstant* list = input(node, 0);
  const OnnxConstant* indices = input(node, 1);
  if (list == nullptr || indices == nullptr || list->shape.size() != 1) return std::nullopt;
  const auto from = numbers(*list);
  const auto at = numbers(*indices);
  if (!from || !at) return std::nullopt;
  OnnxConstant taken = part_of(*list);
  taken.shape = indices->shape;
  taken.is_in_order = false;
  std::ptrdiff_t least = std::ssize(*from);
  std::ptrdiff_t most = -1;
  const auto size = static_cast<double>(from->size());
  for (const double index : *at) {
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
OnnxConstants::Folded OnnxConstants::sliced(const NodeProto& node) const {
  const OnnxConstant* list = input(node, 0);
  if (list == nullptr || node.input_size() < 3) return std::nullopt;
  if (list->shape.size() != 1 && list->shape.size() != 2) return std::nullopt;
  const auto from = numbers(*list);
  const auto begin = number(node.input(1));
  const auto end = number(node.input(2));
  const auto axis = node.input_size() > 3 ? number(node.input(3)) : 0.0;
  const auto step = node.input_size() > 4 ? number(node.input(4)) : 1.0;
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
OnnxConstants::Folded OnnxConstants::reshaped(const NodeProto& node,
                                              const OnnxAttributes& attributes) const {
  const OnnxConstant* value = input(node, 0);
  if (value == nullptr || value->is_transposed) return std::nullopt;
  OnnxConstant other = *value;
  const auto list = node.input_size() > 1 ? integers(node.input(1)) : attributes.integers("axes");
  if (!list) return std::nullopt;
  if (node.op_type() == "Unsqueeze") {
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
  if (node.op_type() == "Squeeze") {
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

OnnxConstants::Folded OnnxConstants::transposed(const NodeProto& node,
                                                const OnnxAttributes& attributes) const {
  const OnnxConstant* value = input(node, 0);
  const std::vector<std::int64_t> order = attributes.integers("perm");
  if (value == nullptr || value->shape.size() != 2 ||
      (!order.empty() && order != std::vector<std::int64_t>{1, 0})) {
    return std::nullopt;
  }
  OnnxConstant other = *value;
  other.is_in_order = false;
  std::swap(other.shape[0], other.shape[1]);
  if (value->stored == nullptr || !value->is_float) {  // only floats are read in another order
    const auto from = numbers(*value);
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
  if (value->shape != file_.shape_of(*value->stored) || value->is_transposed) return std::nullopt;
  other.is_transposed = true;
  return other;
}

OnnxConstants::Folded OnnxConstants::cast(const NodeProto& node,
                                          const OnnxAttributes& attributes) const {
  const OnnxConstant* value = input(node, 0);
  if (value == nullptr) return std::nullopt;
  bool is_float = true;  // CastLike is applied to floats alone
  if (node.op_type() == "Cast") {
    is_float = OnnxFile::is_float_type(static_cast<std::int32_t>(attributes.integer("to", 0)));
  }
  if (is_float == value->is_float) return *value;
  auto converted = numbers(*value);
  if (!converted) return std::nullopt;
  if (!is_float) {
    for (double& each : *converted) each = std::trunc(each);
  }
  OnnxConstant other = part_of(*value);
  other.is_float = is_float;
  other.numbers = *std::move(converted);
  return other;
}

OnnxConstants::Folded OnnxConstants::square_root(const NodeProto& node) const {
  const OnnxConstant* value = input(node, 0);
  auto roots = value != nullptr && value->is_float ? numbers(*value) : std::nullopt;
  if (!roots || origin(node, 0) != OnnxOrigin::kFixed ||
      std::ranges::any_of(*roots, [](double each) { return !(each >= 0.0); })) {
    return std::nullopt;
  }
  for (double& each : *roots) each = std::sqrt(each);
  return OnnxConstant{.shape = value->shape, .numbers = *std::move(roots)};
}

OnnxConstants::Folded OnnxConstants::arithmetic(const NodeProto& node) const {
  const OnnxConstant* a = input(node, 0);
  const OnnxConstant* b = input(node, 1);
  if (a == nullptr || b == nullptr || a->is_float != b->is_float) return std::nullopt;
  for (const int i : {0, 1}) {
    if (origin(node, i) != OnnxOrigin::kFixed) return std::nullopt;
  }
  const auto left = numbers(*a);
  const auto right = numbers(*b);
  if (!left || !right || left->empty() || right->empty()) return std::nullopt;
  if (a->shape != b->shape && left->size() != 1 && right->size() != 1) return std::nullopt;
  const bool is_of_left = left->size() != right->size() ? left->size() > right->size()
                                                        : a->shape.size() >= b->shape.size();
  OnnxConstant result{.shape = is_of_left ? a->shape : b->shape, .is_float = a->is_float};
  for (std::size_t i = 0; i < std::max(left->size(), right->size()); ++i) {
    const double x = (*left)[left->size() == 1 ? 0 : i];
    const double y = (*right)[right->size() == 1 ? 0 : i];
    double value = 0.0;
    const bool is_sum = node.op_type() == "Add" || node.op_type() == "Sub";
    const bool is_product = node.op_type() == "Mul" || node.op_type() == "Div";
    if (std::isnan(x) && ((is_sum && y == 0.0) || (is_product && y == 1.0))) {
      result.numbers.push_back(x);  // the number of samples, unchanged
      continue;
    }
    if (node.op_type() == "Add") {
      value = x + y;
    } else if (node.op_type() == "Sub") {
      value = x - y;
    } else if (node.op_type() == "Mul") {
      value = x * y;
    } else if (node.op_type() == "Div") {
      value = a->is_float ? x / y : std::trunc(x / y);
    } else {
      value = std::pow(x, y);
    }
    if (!std::isfinite(value)) return std::nullopt;
    result.numbers.push_back(value);
  }
  return result;
}

OnnxConstants::Folded OnnxConstants::compute(
    const NodeProto& node,
    const std::function<std::optional<Shape>(const std::string&)>& shape_of) const {
  const OnnxAttributes attributes(file_, node);
  const std::string& op = node.op_type();
  if (op == "Constant") return of_constant_node(node, attributes);
  if (op == "Shape" && node.input_size() == 1) {
    const OnnxConstant* value = find(node.input(0));
    const std::optional<Shape> shape =
        value != nullptr ? std::optional(value->shape) : shape_of(node.input(0));
    if (!shape) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(shape->size());
    const auto position = [&](std::int64_t index) {
      return std::clamp<std::int64_t>(index < 0 ? index + rank : index, 0, rank);
    };
    const std::int64_t begin = position(attributes.integer("start", 0));
    const std::int64_t end = std::max(begin, position(attributes.integer("end", rank)));
    OnnxConstant sides = list_of({shape->begin() + begin, shape->begin() + end});
    std::ranges::replace(sides.numbers, -1.0, std::numeric_limits<double>::quiet_NaN());
    return sides;
  }
  if (op == "ConstantOfShape") return filled(node, attributes);
  if (op == "Identity" && input(node, 0) != nullptr) {
    OnnxConstant same = *input(node, 0);
    const bool is_parameter = origins_.is_parameter_of_identity(node.output(0));
    if (!same.source.empty() && is_parameter) same.source = node.output(0);
    return same;
  }
  if (op == "Expand") return expanded(node);
  if (op == "Concat") return joined(node);
  if (op == "Gather") return gathered(node);
  if (op == "Slice") return sliced(node);
  if (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze") return reshaped(node, attributes);
  if (op == "Transpose") return transposed(node, attributes);
  if (op == "Cast" || op == "CastLike") return cast(node, attributes);
  if (op == "Sqrt") return square_root(node);
  constexpr std::string_view kArithmetic[] = {"Add", "Sub", "Mul", "Div", "Pow"};
  if (std::ranges::find(kArithmetic, op) != std::end(kArithmetic)) return arithmetic(node);
  return std::nullopt;
}

bool OnnxConstants::fold(const NodeProto& node,
                         const std::function<std::optional<Shape>(const std::string&)>& shape_of) {
  if (node.output_size() != 1 || (!node.domain().empty() && node.domain() != "ai.onnx")) {
    return false;
  }
  Folded folded = compute(node, shape_of);
  if (!folded) return false;
  num_folded_ += static_cast<std::int64_t>(folded->numbers.size());
  if (num_folded_ > kMostFoldedTogether) {
    file_.damaged("computed constants have too many elements; expected those of a network");
  }
  constants_[node.output(0)] = *std::move(folded);
  return true;
}

}  // namespace syncopate
