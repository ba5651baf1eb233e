#include "deploy/onnx/onnx_attributes.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate {
namespace {

// Values of AttributeProto.AttributeType.
constexpr std::int32_t kFloatAttribute = 1;
constexpr std::int32_t kIntAttribute = 2;
constexpr std::int32_t kStringAttribute = 3;
constexpr std::int32_t kFloatsAttribute = 6;
constexpr std::int32_t kIntsAttribute = 7;

}  // namespace

const proto::onnx::AttributeProto* OnnxAttributes::find(std::string_view name) const {
  for (const auto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

const proto::onnx::AttributeProto* OnnxAttributes::typed(std::string_view name,
                                                         std::int32_t type) const {
  const auto* attribute = find(name);
  if (attribute != nullptr && attribute->type() != type) {
    file_.damaged(fmt::format("node {} ({}): attribute {} is of type {}; expected {}",
                              shown_name(node_.name()), shown_name(node_.op_type()), name,
                              attribute->type(), type));
  }
  return attribute;
}

std::int64_t OnnxAttributes::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* attribute = typed(name, kIntAttribute);
  return attribute == nullptr ? otherwise : attribute->i();
}

float OnnxAttributes::number(std::string_view name, float otherwise) const {
  const auto* attribute = typed(name, kFloatAttribute);
  return attribute == nullptr ? otherwise : attribute->f();
}

std::string OnnxAttributes::text(std::string_view name, std::string otherwise) const {
  const auto* attribute = typed(name, kStringAttribute);
  return attribute == nullptr ? std::move(otherwise) : attribute->s();
}

std::vector<float> OnnxAttributes::numbers(std::string_view name) const {
  const auto* attribute = typed(name, kFloatsAttribute);
  if (attribute == nullptr) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::int64_t> OnnxAttributes::integers(std::string_view name) const {
  const auto* attribute = typed(name, kIntsAttribute);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

void add_integer(proto::onnx::NodeProto& node, const char* name, std::int64_t value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(kIntAttribute);
  attribute.set_i(value);
}

}  // namespace syncopate
