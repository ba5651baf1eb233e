// Writes safetensors files as other programs do: tensors of any type, without metadata.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

struct RawTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  std::string bytes;
};

template <typename Element>
std::string bytes_of(const std::vector<Element>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element)};
}

// Returns the bytes of a file with these tensors, in this order.
inline std::string safetensors_bytes(const std::vector<RawTensor>& tensors) {
  std::string header = "{";
  std::string data;
  for (const RawTensor& tensor : tensors) {
    std::string shape;
    for (const std::int64_t extent : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    header += (header.size() == 1 ? "" : ",") + ("\"" + tensor.name) + R"(":{"dtype":")" +
              tensor.dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" +
              std::to_string(data.size()) + "," +
              std::to_string(data.size() + tensor.bytes.size()) + "]}";
    data += tensor.bytes;
  }
  header += "}";
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

}  // namespace syncopate
