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

constexpr std::array<std::pair<StoredType, std::string_view>, 9> kStoredTypes = {
    {{StoredType::kF32, "float32"},
     {StoredType::kI32, "int32"},
     {StoredType::kU8, "uint8"},
     {StoredType::kI16, "int16"},
     {StoredType::kI8, "int8"},
     {StoredType::kI64, "int64"},
     {StoredType::kBool, "bool"},
     {StoredType::kU16, "uint16"},
     {StoredType::kU32, "uint32"}}};

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

// Calls `use` with the list of values of a type, and returns what it returns.
template <typename Use>
auto with_values(const proto::Tensor& tensor, StoredType type, const Use& use) {
  switch (type) {
    case StoredType::kF32:
      return use(tensor.float_val());
    case StoredType::kI64:
      return use(tensor.int64_val());
    case StoredType::kBool:
      return use(tensor.bool_val());
    case StoredType::kU32:
      return use(tensor.uint32_val());
    default:
      return use(tensor.int_val());
  }
}

}  // namespace

std::string_view name(StoredType type) noexcept {
  return std::ranges::find(kStoredTypes, type, [](const auto& row) { return row.first; })->second;
}

std::size_t size_bytes(StoredType type) noexcept {
  return with_element_type(type, [](auto zero) { return sizeof zero; });
}

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
  const auto row = std::ranges::find_if(kStoredTypes, [&](const auto& each) {
    return static_cast<int>(each.first) == message.dtype();
  });
  if (row == kStoredTypes.end()) {
    refuse(fmt::format("a tensor of TensorFlow's type {}; expected float32, an integer or bool",
                       message.dtype()));
  }
  if (message.tensor_shape().unknown_rank()) refuse("a tensor of an unknown shape");
  StoredTensor tensor{.type = row->first, .shape = {}, .elements = {}};
  const std::size_t element_bytes = size_bytes(tensor.type);
  std::int64_t count = 1;
  const std::int64_t most = kMostTensorBytes / static_cast<std::int64_t>(element_bytes);
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
  with_values(message, tensor.type, [&](const auto& values) {
    const auto listed = static_cast<std::size_t>(values.size());
    if (content.empty() && listed <= elements) {
      with_element_type(tensor.type, [&](auto zero) {
        tensor.elements = elements_of<decltype(zero)>(values, elements);
      });
    } else if (listed == 0 && content.size() == elements * element_bytes) {
      tensor.elements = std::move(content);
    } else {
      refuse(fmt::format("{} values and {} bytes for a tensor of {} {}", listed, content.size(),
                         row->second, to_string(tensor.shape)));
    }
  });
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
