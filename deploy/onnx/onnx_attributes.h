// The attributes of a node of an ONNX file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/onnx/onnx_file.h"

namespace syncopate {

// Lives as long as its node. A getter throws FileError for an attribute of another type.
class OnnxAttributes {
 public:
  OnnxAttributes(const OnnxFile& file, const proto::onnx::NodeProto& node)
      : file_(file), node_(node) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  float number(std::string_view name, float otherwise) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::vector<float> numbers(std::string_view name) const;          // empty if it is absent
  std::vector<std::int64_t> integers(std::string_view name) const;  // empty if it is absent
  const proto::onnx::NodeProto& node() const noexcept { return node_; }
  const proto::onnx::AttributeProto* find(std::string_view name) const;

 private:
  // Returns the attribute if it is there, of this type.
  const proto::onnx::AttributeProto* typed(std::string_view name, std::int32_t type) const;

  const OnnxFile& file_;
  const proto::onnx::NodeProto& node_;
};

// Adds an attribute that is a whole number.
void add_integer(proto::onnx::NodeProto& node, const char* name, std::int64_t value);

}  // namespace syncopate
