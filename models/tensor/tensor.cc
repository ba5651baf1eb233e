#include "models/tensor/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

template <typename Element>
std::span<Element> host_elements(const Tensor& tensor, DType expected) {
  if (tensor.dtype() != expected || tensor.device().kind != DeviceKind::kCpu) {
    throw ShapeError(fmt::format("tensor {} is {} on {}; expected {} on the host",
                                 to_string(tensor.shape()), name(tensor.dtype()),
                                 to_string(tensor.device()), name(expected)));
  }
  return {reinterpret_cast<Element*>(tensor.bytes().data()),
          static_cast<std::size_t>(tensor.num_elements())};
}

}  // namespace

std::int64_t num_elements(const Shape& shape) noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Tensor::Tensor(std::shared_ptr<Buffer> memory, std::size_t offset_bytes, Shape shape, DType dtype)
    : memory_(std::move(memory)),
      offset_bytes_(offset_bytes),
      shape_(std::move(shape)),
      num_elements_(syncopate::num_elements(shape_)),
      dtype_(dtype) {
  const std::size_t end =
      offset_bytes_ + static_cast<std::size_t>(num_elements_) * syncopate::size_bytes(dtype_);
  if (memory_ == nullptr || num_elements_ < 0 || end > memory_->size_bytes()) {
    throw ShapeError(fmt::format("tensor {} of {} at byte {} does not fit into {} bytes of memory",
                                 to_string(shape_), name(dtype_), offset_bytes_,
                                 memory_ == nullptr ? 0 : memory_->size_bytes()));
  }
}

Device Tensor::device() const noexcept { return memory_ == nullptr ? Device{} : memory_->device(); }

std::span<std::byte> Tensor::bytes() const {
  if (memory_ == nullptr) return {};
  return {memory_->data() + offset_bytes_,
          static_cast<std::size_t>(num_elements_) * syncopate::size_bytes(dtype_)};
}

std::span<float> Tensor::f32() const { return host_elements<float>(*this, DType::kF32); }
std::span<std::int32_t> Tensor::i32() const {
  return host_elements<std::int32_t>(*this, DType::kI32);
}
std::span<std::uint8_t> Tensor::u8() const {
  return host_elements<std::uint8_t>(*this, DType::kU8);
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (shape_.empty() || begin < 0 || begin > end || end > shape_[0]) {
    throw ShapeError(
        fmt::format("rows [{}, {}) are outside of a tensor {}", begin, end, to_string(shape_)));
  }
  Shape shape = shape_;
  shape[0] = end - begin;
  const std::int64_t row = shape_[0] == 0 ? 0 : num_elements_ / shape_[0];
  return {memory_,
          offset_bytes_ + static_cast<std::size_t>(begin * row) * syncopate::size_bytes(dtype_),
          std::move(shape), dtype_};
}

Tensor Tensor::reshaped(Shape shape) const {
  if (syncopate::num_elements(shape) != num_elements_) {
    throw ShapeError(
        fmt::format("a tensor {} cannot be reshaped to {}: the numbers of elements differ",
                    to_string(shape_), to_string(shape)));
  }
  return {memory_, offset_bytes_, std::move(shape), dtype_};
}

Tensor make_host_tensor(Shape shape, DType dtype) {
  const auto bytes = static_cast<std::size_t>(num_elements(shape)) * size_bytes(dtype);
  return {make_host_buffer(bytes), 0, std::move(shape), dtype};
}

Tensor make_sparse_host_tensor(Shape shape, DType dtype) {
  const auto bytes = static_cast<std::size_t>(num_elements(shape)) * size_bytes(dtype);
  return {make_sparse_host_buffer(bytes), 0, std::move(shape), dtype};
}

}  // namespace syncopate
