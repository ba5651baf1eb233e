// A block of memory on one device, owned once and shared by the tensors that look into it.
#pragma once

#include <cstddef>
#include <memory>

#include "models/tensor/device.h"

namespace syncopate {

// Every block and every parameter slice starts on such a boundary (bytes).
inline constexpr std::size_t kAlignmentBytes = 256;

class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() noexcept = 0;  // host code must not dereference device bytes
  virtual std::size_t size_bytes() const noexcept = 0;
  virtual Device device() const noexcept = 0;
};

// Zeroed host memory, aligned to kAlignmentBytes; large blocks ask for huge pages.
// Throws OutOfMemoryError.
std::shared_ptr<Buffer> make_host_buffer(std::size_t size_bytes);

}  // namespace syncopate
