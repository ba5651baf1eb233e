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

// Calls `use` with a zero of the C++ type that an element has, and returns what it returns.
template <typename Use>
auto with_element_type(StoredType type, const Use& use) {
  switch (type) {
    case StoredType::kF32:
      return use(0.0F);
    case StoredType::kI32:
      return use(std::int32_t{});
    case StoredType::kU8:
    case StoredType::kBool:
      return use(std::uint8_t{});
    case StoredType::kI16:
      return use(std::int16_t{});
    case StoredType::kI8:
      return use(std::int8_t{});
    case StoredType::kI64:
      return use(std::int64_t{});
    case StoredType::kU16:
      return use(std::uint16_t{});
    case StoredType::kU32:
      break;
  }
  return use(std::uint32_t{});
}

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
