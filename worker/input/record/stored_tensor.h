// Parses and serializes tensors in the form of tf.io.serialize_tensor, which is TensorFlow's
// message TensorProto. Protobuf parses the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/tensor/tensor.h"

namespace syncopate {

// The element types that can be read, with the numbers of TensorFlow. Source: TensorFlow,
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
std::string_view name(StoredType type) noexcept;  // TensorFlow's name, such as "uint16"
std::size_t size_bytes(StoredType type) noexcept;

struct StoredTensor {
  StoredType type = StoredType::kF32;
  Shape shape;
  std::string elements;  // each element has size_bytes(type) bytes; little-endian, row-major

  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(elements)); }
};

// Parses a serialized tensor. Elements are read from the field tensor_content, or from the list of
// values that TensorFlow uses for small tensors; in a short list the last value repeats. what: the
// name of the tensor in messages. Throws FileError if the bytes are not a serialized tensor, the
// type cannot be read, or the shape is unknown, exceeds 256 MB or does not fit the values.
StoredTensor parse_tensor(std::span<const std::byte> bytes, std::string_view what);

// Serializes a tensor in the form of tf.io.serialize_tensor.
std::vector<std::byte> serialize_tensor(const StoredTensor& tensor);

}  // namespace syncopate
