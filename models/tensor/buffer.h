// Devices, element types, and blocks of memory on a device. Tensors are views of a block and share
// its ownership.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace syncopate {

class SharedMapping;

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};
std::string to_string(Device device);  // such as "cpu", "cuda:1"

// The type of a tensor's elements: f32, i32, u8 and others.
enum class DType : std::uint8_t { kF32, kBf16, kF16, kI32, kU8, kU16, kI64 };
std::size_t size_bytes(DType dtype) noexcept;  // bytes of one element
std::string_view name(DType dtype) noexcept;   // such as "f32"

// The alignment in bytes of every block of memory and of every parameter in the arena.
inline constexpr std::size_t kAlignmentBytes = 256;

class Buffer {
 public:
  virtual ~Buffer() = default;
  // Returns the block's address on device(). Host code must not dereference an address on a GPU.
  virtual std::byte* data() noexcept = 0;
  virtual std::size_t size_bytes() const noexcept = 0;
  virtual Device device() const noexcept = 0;
};

// Returns zeroed host memory, aligned to kAlignmentBytes; blocks of 2 MiB or more ask for huge
// pages. Throws OutOfMemoryError.
std::shared_ptr<Buffer> make_host_buffer(std::size_t size_bytes);
// Returns zeroed host memory. The kernel allocates a page only when the page is first written, so
// this is for large blocks that a process uses only in part. Throws OutOfMemoryError.
std::shared_ptr<Buffer> make_sparse_host_buffer(std::size_t size_bytes);

// Returns the memory of a shared mapping from `offset_bytes` on. The buffer owns the mapping.
std::shared_ptr<Buffer> make_mapped_buffer(SharedMapping mapping, std::size_t offset_bytes);

}  // namespace syncopate
