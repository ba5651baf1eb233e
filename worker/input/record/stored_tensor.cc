#include "worker/input/record/stored_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "models/base/errors.h"
#include "worker/input/record/proto/tensor.pb.h"

namespace syncopate {
namespace {

constexpr std::int64_t kMostTensorBytes = std::int64_t{256} << 20;

struct StoredTypeRow {
  StoredType type;
  std::string_view name;
  std::size_t size_bytes;
};
constexpr std::array<StoredTypeRow, 9> kStoredTypes = {{{StoredType::kF32, "float32", 4},
                                                        {StoredType::kI32, "int32", 4},
                                                        {StoredType::kU8, "uint8", 1},
                                                        {StoredType::kI16, "int16", 2},
                                                        {StoredType::kI8, "int8", 1},
                                                        {StoredType::kI64, "int64", 8},
                                                        {StoredType::kBool, "bool", 1},
                                                        {StoredType::kU16, "uint16", 2},
                                                        {StoredType::kU32, "uint32", 4}}};

const StoredTypeRow& row_of(StoredType type) noexcept {
  return *std::ranges::find(kStoredTypes, type, &StoredTypeRow::type);
}

// Returns `count` elements of type To from a list of values. The last value of a shorter list
// repeats, as in TensorFlow; an empty list gives zeros.
template <typename To, typename Values>
std::string elements_of(const Values& values, std::size_t count) {
  std::string elements(count * sizeof(To), '\0');
  if (values.empty()) return elements;
  for (std::size_t i = 0; i < count; ++i) {
    const int place =
        static_cast<int>(std::min<std::size_t>(i, static_cast<std::size_t>(values.size()) - 1));
    const auto value = static_cast<To>(values.Get(place));
    std::memcpy(elements.data() + i * sizeof(To), &value, sizeof(To));
  }
  return elements;
}

std::string listed_elements(const proto::Tensor& tensor, StoredType type, std::size_t count) {
  switch (type) {
    case StoredType::kF32:
      return elements_of<float>(tensor.float_val(), count);
    case StoredType::kI32:
      return elements_of<std::int32_t>(tensor.int_val(), count);
    case StoredType::kU8:
      return elements_of<std::uint8_t>(tensor.int_val(), count);
    case StoredType::kI16:
      return elements_of<std::int16_t>(tensor.int_val(), count);
    case StoredType::kI8:
      return elements_of<std::int8_t>(tensor.int_val(), count);
    case StoredType::kU16:
      return elements_of<std::uint16_t>(tensor.int_val(), count);
    case StoredType::kI64:
      return elements_of<std::int64_t>(tensor.int64_val(), count);
    case StoredType::kBool:
      return elements_of<std::uint8_t>(tensor.bool_val(), count);
    case StoredType::kU32:
      return elements_of<std::uint32_t>(tensor.uint32_val(), count);
  }
  return {};
}

// Returns the number of values in the list of a type.
std::size_t listed_count(const proto::Tensor& tensor, StoredType type) {
  const int count = type == StoredType::kF32    ? tensor.float_val_size()
                    : type == StoredType::kI64  ? tensor.int64_val_size()
                    : type == StoredType::kBool ? tensor.bool_val_size()
                    : type == StoredType::kU32  ? tensor.uint32_val_size()
                                                : tensor.int_val_size();
  return static_cast<std::size_t>(count);
}

}  // namespace

std::string_view name(StoredType type) noexcept { return row_of(type).name; }
std::size_t size_bytes(StoredType type) noexcept { return row_of(type).size_bytes; }

StoredTensor parse_tensor(std::span<const std::byte> bytes, std::string_view what) {
  const auto refuse = [&](const std::string& reason) {
    throw FileError(fmt::format("{}: {}", what, reason));
  };
  proto::Tensor message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    refuse(
        fmt::format("{} bytes that are no serialized tensor; expected what "
                    "tf.io.serialize_tensor writes",
                    bytes.size()));
  }
  const auto row = std::ranges::find_if(kStoredTypes, [&](const StoredTypeRow& each) {
    return static_cast<int>(each.type) == message.dtype();
  });
  if (row == kStoredTypes.end()) {
    refuse(fmt::format("a tensor of TensorFlow's type {}; expected float32, an integer or bool",
                       message.dtype()));
  }
  if (message.tensor_shape().unknown_rank()) refuse("a tensor of an unknown shape");
  StoredTensor tensor{.type = row->type, .shape = {}, .elements = {}};
  std::int64_t count = 1;
  const std::int64_t most = kMostTensorBytes / static_cast<std::int64_t>(row->size_bytes);
  bool fits = true;
  for (const auto& dim : message.tensor_shape().dim()) {
    tensor.shape.push_back(dim.size());
    fits = fits && dim.size() >= 0 && (count == 0 || dim.size() <= most / count);
    if (fits) count *= dim.size();
  }
  if (!fits) {
    refuse(fmt::format("a tensor of shape {}; expected at most 256 MB", to_string(tensor.shape)));
  }
  const auto elements = static_cast<std::size_t>(count);
  std::string& content = *message.mutable_tensor_content();
  const std::size_t listed = listed_count(message, row->type);
  if (content.empty() && listed <= elements) {
    tensor.elements = listed_elements(message, row->type, elements);
  } else if (listed == 0 && content.size() == elements * row->size_bytes) {
    tensor.elements = std::move(content);
  } else {
    refuse(fmt::format("{} values and {} bytes for a tensor of {} {}", listed, content.size(),
                       row->name, to_string(tensor.shape)));
  }
  return tensor;
}

std::vector<std::byte> serialize_tensor(const StoredTensor& tensor) {
  proto::Tensor message;
  message.set_dtype(static_cast<int>(tensor.type));
  for (const std::int64_t size : tensor.shape) {
    message.mutable_tensor_shape()->add_dim()->set_size(size);
  }
  message.set_tensor_content(tensor.elements);
  std::vector<std::byte> bytes(message.ByteSizeLong());
  check(message.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())),
        "a tensor is smaller than 2 GiB");
  return bytes;
}

}  // namespace syncopate
