// Reads and writes the attributes of a node of an ONNX file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/onnx/onnx_file.h"

namespace syncopate {

// Reads the attributes of one node, which must outlive this object. A getter returns `otherwise` if
// the attribute is absent, and throws FileError if it has another type.
class OnnxAttributes {
 public:
  OnnxAttributes(const OnnxFile& file, const proto::onnx::NodeProto& node)
      : file_(file), node_(node) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  float number(std::string_view name, float otherwise) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::vector<float> numbers(std::string_view name) const;  // empty if the attribute is absent
  std::vector<std::int64_t> integers(
      std::string_view name) const;  // empty if the attribute is absent
  const proto::onnx::NodeProto& node() const noexcept { return node_; }
  const proto::onnx::AttributeProto* find(std::string_view name) const;

 private:
  // Returns the attribute; null if it is absent. Throws FileError if it has another type.
  const proto::onnx::AttributeProto* typed(std::string_view name, std::int32_t type) const;

  const OnnxFile& file_;
  const proto::onnx::NodeProto& node_;
};

// Adds an attribute that is a whole number.
void add_integer(proto::onnx::NodeProto& node, const char* name, std::int64_t value);

}  // namespace syncopate
