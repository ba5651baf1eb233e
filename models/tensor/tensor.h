// A dense row-major array: a window on shared memory. Copying a Tensor copies the window, never the
// elements. There are no strides: what is not contiguous is not a Tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/tensor/buffer.h"
#include "models/tensor/device.h"

namespace syncopate {

using Shape = std::vector<std::int64_t>;  // [N, H, W, C]; empty = scalar

std::int64_t num_elements(const Shape& shape) noexcept;  // 1 for a scalar
std::string to_string(const Shape& shape);               // "[64, 28, 28, 1]"

class Tensor {
 public:
  Tensor() = default;
  // Throws ShapeError when the window leaves `memory`.
  Tensor(std::shared_ptr<Buffer> memory, std::size_t offset_bytes, Shape shape, DType dtype);

  const Shape& shape() const noexcept { return shape_; }
  DType dtype() const noexcept { return dtype_; }
  Device device() const noexcept;
  std::int64_t num_elements() const noexcept { return num_elements_; }

  std::span<std::byte> bytes() const;  // any device; host code must not dereference device bytes
  // Host memory of that dtype. Throws ShapeError otherwise.
  std::span<float> f32() const;
  std::span<std::int32_t> i32() const;
  std::span<std::uint8_t> u8() const;

  // Rows [begin, end) of the first dimension, as a window. Throws ShapeError.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  // The same elements under another shape. Throws ShapeError when the counts differ.
  Tensor reshaped(Shape shape) const;

 private:
  std::shared_ptr<Buffer> memory_;
  std::size_t offset_bytes_ = 0;
  Shape shape_;
  std::int64_t num_elements_ = 0;
  DType dtype_ = DType::kF32;
};

// Zeroed host memory of its own. Throws OutOfMemoryError.
Tensor make_host_tensor(Shape shape, DType dtype);

}  // namespace syncopate
