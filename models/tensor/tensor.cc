#include "models/tensor/tensor.h"

#include <functional>
#include <numeric>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

template <typename Element>
std::span<Element> host_elements(const Tensor& tensor, DType expected) {
  if (tensor.dtype() != expected || tensor.device().kind != DeviceKind::kCpu) {
    throw ShapeError("tensor " + to_string(tensor.shape()) + " is " +
                     std::string(name(tensor.dtype())) + " on " + to_string(tensor.device()) +
                     "; expected " + std::string(name(expected)) + " on the host");
  }
  return {reinterpret_cast<Element*>(tensor.bytes().data()),
          static_cast<std::size_t>(tensor.num_elements())};
}

}  // namespace

std::int64_t num_elements(const Shape& shape) noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Tensor::Tensor(std::shared_ptr<Buffer> memory, std::size_t offset_bytes, Shape shape, DType dtype)
    : memory_(std::move(memory)),
      offset_bytes_(offset_bytes),
      shape_(std::move(shape)),
      num_elements_(syncopate::num_elements(shape_)),
      dtype_(dtype) {
  const std::size_t end =
      offset_bytes_ + static_cast<std::size_t>(num_elements_) * syncopate::size_bytes(dtype_);
  if (memory_ == nullptr || num_elements_ < 0 || end > memory_->size_bytes()) {
    throw ShapeError("tensor " + to_string(shape_) + " of " + std::string(name(dtype_)) +
                     " does not fit its memory");
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
    throw ShapeError("rows [" + std::to_string(begin) + ", " + std::to_string(end) +
                     ") of a tensor " + to_string(shape_));
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
    throw ShapeError("a tensor " + to_string(shape_) + " cannot be seen as " + to_string(shape));
  }
  return {memory_, offset_bytes_, std::move(shape), dtype_};
}

Tensor make_host_tensor(Shape shape, DType dtype) {
  const auto bytes = static_cast<std::size_t>(num_elements(shape)) * size_bytes(dtype);
  return {make_host_buffer(bytes), 0, std::move(shape), dtype};
}

}  // namespace syncopate
