// A dense, contiguous, row-major array: a view of a shared buffer. Copying a Tensor copies the
// view, never the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/tensor/buffer.h"

namespace syncopate {

using Shape = std::vector<std::int64_t>;  // for example [N, H, W, C]; an empty shape is a scalar

std::int64_t num_elements(const Shape& shape) noexcept;  // 1 for a scalar
std::string to_string(const Shape& shape);               // such as "[64, 28, 28, 1]"

class Tensor {
 public:
  Tensor() = default;
  // Makes a view that starts at `offset_bytes` of `memory`. Throws ShapeError when the view does
  // not fit into the memory.
  Tensor(std::shared_ptr<Buffer> memory, std::size_t offset_bytes, Shape shape, DType dtype);

  const Shape& shape() const noexcept { return shape_; }
  DType dtype() const noexcept { return dtype_; }
  Device device() const noexcept;
  std::int64_t num_elements() const noexcept { return num_elements_; }

  // Returns the memory of the tensor's elements. Host code must not dereference addresses on a GPU.
  std::span<std::byte> bytes() const;
  // Return the tensor's elements. Throw ShapeError unless the tensor is on the host and has the
  // dtype that the function's name says.
  std::span<float> f32() const;
  std::span<std::int32_t> i32() const;
  std::span<std::uint8_t> u8() const;

  // Returns a view of the tensor's rows [begin, end), along its first axis. Throws ShapeError when
  // the rows are out of range.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  // Returns a view of the same elements with another shape. Throws ShapeError when the numbers of
  // elements differ.
  Tensor reshaped(Shape shape) const;

 private:
  std::shared_ptr<Buffer> memory_;
  std::size_t offset_bytes_ = 0;
  Shape shape_;
  std::int64_t num_elements_ = 0;
  DType dtype_ = DType::kF32;
};

// Returns a tensor in new, zeroed host memory. Throws OutOfMemoryError.
Tensor make_host_tensor(Shape shape, DType dtype);
// Returns a tensor in memory made by make_sparse_host_buffer(). Throws OutOfMemoryError.
Tensor make_sparse_host_tensor(Shape shape, DType dtype);

}  // namespace syncopate
