#include "models/graph/node_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace syncopate {
namespace {

constexpr const char* kClasses = "classes";

}  // namespace

std::string shown(const nlohmann::ordered_json& value) {
  std::size_t size = 60;
  const std::string text = value.dump();
  if (text.size() <= size) return text;
  while ((text[size] & 0xC0) == 0x80) --size;  // inside a character of UTF-8
  return text.substr(0, size) + "...";
}

NodeReader::NodeReader(const NetworkText& source, NodeId number)
    : text_(source),
      json_((*source.json)["nodes"][static_cast<std::size_t>(number)]),
      number_(number) {}

bool NodeReader::has(const char* key) const { return json_.contains(key); }

template <typename T>
T NodeReader::get(const char* key, std::string_view type) const {
  if (!has(key)) refuse(fmt::format("'{}' is missing; expected {}", key, type));
  try {
    return json_.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    refuse(fmt::format("'{}' is {}; expected {}", key, shown(json_.at(key)), type));
  }
}
// Called by the reader in graph_parser.cc, too.
template std::string NodeReader::get<std::string>(const char* key, std::string_view type) const;

std::string NodeReader::located(const std::string& what) const {
  const std::string node = name_.empty() ? fmt::format("{}", number_) : "'" + name_ + "'";
  const std::string op = op_.empty() ? "" : " (" + op_ + ")";
  const std::string place =
      text_.data == nullptr
          ? "the network's text"
          : fmt::format("{}:{}", text_.path, text_.lines[static_cast<std::size_t>(number_)]);
  return fmt::format("{}: node {}{}: {}", place, node, op, what);
}

const OperationRow* NodeReader::read_op(const char* expected) {
  if (!json_.is_object()) refuse("expected an object {\"op\": ...}");
  op_ = get<std::string>("op", expected);
  const auto row = std::ranges::find_if(operation_rows(), [&](const OperationRow& each) {
    return each.name == op_ && each.fields != nullptr;
  });
  return row == operation_rows().end() ? nullptr : &*row;
}

std::int64_t NodeReader::integer(const char* key, const Json& value, std::int64_t least,
                                 std::int64_t most) const {
  // An unsigned number above the range of std::int64_t is still one for nlohmann_json.
  const bool is_whole =
      value.is_number_integer() &&
      (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{1} << 62);
  if (is_whole && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most) {
    return value.get<std::int64_t>();
  }
  refuse(fmt::format("'{}' is {}; expected a whole number from {} to {}", key, shown(value), least,
                     most));
}

void NodeReader::check_fields(std::span<const Field> fields) const {
  for (const auto& [key, value] : json_.items()) {
    if (key == "op" || key == "name" || key == "inputs") continue;
    if (std::ranges::find(fields, key, &Field::key) != fields.end()) continue;
    std::vector<std::string_view> known;
    for (const Field& field : fields) known.emplace_back(field.key);
    refuse(known.empty() ? fmt::format("'{}' is no field of {}, which has none", key, op_)
                         : fmt::format("'{}' is no field of {}; its fields are {}", key, op_,
                                       fmt::join(known, ", ")));
  }
}

void NodeReader::read_fields(std::span<const Field> fields) const {
  for (const Field& field : fields) {
    if (!has(field.key) && !field.is_required) continue;
    std::visit([&](const auto& value) { read(field.key, value); }, field.value);
  }
}

void NodeReader::read(const char* key, const WholeField& field) const {
  if (!has(key)) refuse(fmt::format("'{}' is missing; expected a whole number", key));
  *field.value = static_cast<int>(integer(key, json_[key], field.least, field.most));
}

void NodeReader::read(const char* key, const ChannelsField& field) const {
  if (text_.data != nullptr && has(key) && json_[key] == kClasses) {
    *field.value = text_.data->classes;
    *field.classes_of = text_.data;
    return;
  }
  read(key, WholeField{field.value, 1, kMostChannels});
}

void NodeReader::read(const char* key, const NumberField& field) const {
  if (!has(key)) refuse(field.why_required);
  // nlohmann_json reads true as the number 1.
  const float value = json_[key].is_number() ? get<float>(key, "a number") : field.least - 1.0F;
  if (!(value >= field.least && value <= field.most)) {
    refuse(fmt::format("'{}' is {}; expected {} to {}", key, shown(json_[key]), field.least,
                       field.most));
  }
  if (field.excludes_least && value == field.least) {
    refuse(fmt::format("'{}' is {}; expected more", key, field.least));
  }
  if (field.excludes_most && value == field.most) {
    refuse(fmt::format("'{}' is {}; expected less", key, field.most));
  }
  *field.value = value;
}

void NodeReader::read(const char* key, const FlagField& field) const {
  *field.value = get<bool>(key, "true or false");
}

void NodeReader::read(const char* key, const KernelField& field) const {
  const Json& kernel = json_[key];
  const bool is_pair = kernel.is_array() && kernel.size() == 2;
  if (kernel.is_array() && !is_pair) refuse(fmt::format("'{}' has not 2 sides", key));
  *field.height = window(key, is_pair ? kernel[0] : kernel, 1);
  *field.width = window(key, is_pair ? kernel[1] : kernel, 1);
}

void NodeReader::read(const char* key, const PaddingField& field) const {
  const Json& pad = json_[key];
  if (!pad.is_array()) {
    *field.value = window(key, pad, 0);
    return;
  }
  if (pad.size() != 4) {
    refuse(fmt::format("'{}' has not 4 sides: top, left, bottom, right", key));
  }
  *field.value = {window(key, pad[0], 0), window(key, pad[1], 0), window(key, pad[2], 0),
                  window(key, pad[3], 0)};
}

void NodeReader::read(const char* key, const ShapeField& field) const {
  const auto sides = get<std::vector<Json>>(key, "a list");
  if (sides.size() > 3) refuse(fmt::format("'{}' has more than 3 sides", key));
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const bool is_last = i + 1 == sides.size();
    field.value->push_back(integer(
        key, sides[i], 1, is_last ? std::max(field.largest, kMostChannels) : field.largest));
  }
}

void NodeReader::read(const char* key, const NumbersField& field) const {
  *field.value = get<std::vector<float>>(key, "a list of numbers");
  for (const float value : *field.value) {
    if (!std::isfinite(value)) refuse(fmt::format("'{}' is not finite", key));
    if (field.is_positive && value <= 0.0F) refuse(fmt::format("'{}' is not positive", key));
  }
}

std::vector<int> NodeReader::axes(const char* key) const {
  std::vector<int> axes;
  for (const Json& each : get<std::vector<Json>>(key, "a list")) {
    const auto axis = static_cast<int>(integer(key, each, 0, 2));
    if (std::ranges::find(axes, axis) != axes.end()) {
      refuse(fmt::format("'{}' has the axis {} twice", key, axis));
    }
    axes.push_back(axis);
  }
  return axes;
}

void NodeReader::read(const char* key, const OrderField& field) const {
  const std::vector<int> order = axes(key);
  if (order.size() != field.value->size()) {
    refuse(fmt::format("'{}' has not the 3 axes of a map, such as [1, 0, 2]", key));
  }
  std::ranges::copy(order, field.value->begin());
}

void NodeReader::read(const char* key, const AxesField& field) const {
  for (const int axis : axes(key)) field.value->at(static_cast<std::size_t>(axis)) = true;
}

template <typename Enum>
void NodeReader::read(const char* key, const ChoiceField<Enum>& field) const {
  const auto text = get<std::string>(key, "a text");
  std::vector<std::string_view> known;
  for (const Enum each : field.all) {
    if (syncopate::name(each) == text) {
      *field.value = each;
      return;
    }
    known.push_back(syncopate::name(each));
  }
  refuse(known.size() == 2 ? fmt::format("the {} '{}' is not known; choose {}", field.what, text,
                                         fmt::join(known, " or "))
                           : fmt::format("the {} '{}' is not known; choose one of {}", field.what,
                                         text, fmt::join(known, ", ")));
}

}  // namespace syncopate
