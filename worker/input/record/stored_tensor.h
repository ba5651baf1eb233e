// A tensor that tf.io.serialize_tensor wrote: TensorFlow's TensorProto. The parser is protobuf's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// The element types that are read, with TensorFlow's numbers. Source: TensorFlow,
// core/framework/types.proto.
enum class StoredType : std::uint8_t {
  kF32 = 1,
  kI32 = 3,
  kU8 = 4,
  kI16 = 5,
  kI8 = 6,
  kI64 = 9,
  kBool = 10,
  kU16 = 17,
  kU32 = 22,
};
std::string_view name(StoredType type) noexcept;  // TensorFlow's, such as "uint16"
std::size_t size_bytes(StoredType type) noexcept;

struct StoredTensor {
  StoredType type = StoredType::kF32;
  Shape shape;
  std::string elements;  // size_bytes(type) each, little-endian, row-major

  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(elements)); }
};

// Parses a serialized tensor. Elements are read from its content, or from its list of values, which
// TensorFlow uses for small tensors; the last value of a short list repeats. what: names the bytes
// in messages. Throws FileError: no serialized tensor, another type, a shape that is unknown, has
// more than 256 MB or does not fit the values.
StoredTensor parse_tensor(std::span<const std::byte> bytes, std::string_view what);

// Returns a tensor as tf.io.serialize_tensor does.
std::vector<std::byte> serialize_tensor(const StoredTensor& tensor);

}  // namespace syncopate
