#include "models/tensor/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "models/base/errors.h"
#include "models/base/process_limits.h"
#include "models/base/shared_memory_file.h"

namespace syncopate {
namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t size_bytes) : size_bytes_(size_bytes) {
    // New pages of 4 KiB are first written at 2.7 GB/s, huge pages at 13 GB/s, so blocks of 2 MiB
    // or more ask for huge pages.
    constexpr std::size_t kLargeBlockBytes = std::size_t{2} << 20;
    const std::size_t alignment =
        size_bytes >= kLargeBlockBytes ? kLargeBlockBytes : kAlignmentBytes;
    const std::size_t rounded = (size_bytes + alignment - 1) / alignment * alignment;
    if (rounded < size_bytes) {
      throw OutOfMemoryError(
          fmt::format("host memory: a block of {} bytes is too large", size_bytes));
    }
    data_ =
        static_cast<std::byte*>(std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded));
    if (data_ == nullptr) {
      throw OutOfMemoryError(
          fmt::format("host memory: {} MiB are not available: {}; or try a smaller batch",
                      size_bytes >> 20, memory_advice()));
    }
    if (size_bytes >= kLargeBlockBytes) madvise(data_, rounded, MADV_HUGEPAGE);
    std::memset(data_, 0, rounded);
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() override { std::free(data_); }

  std::byte* data() noexcept override { return data_; }
  std::size_t size_bytes() const noexcept override { return size_bytes_; }
  Device device() const noexcept override { return {}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_;
};

class SparseHostBuffer final : public Buffer {
 public:
  explicit SparseHostBuffer(std::size_t size_bytes) : size_bytes_(size_bytes) {
    void* const data = mmap(nullptr, mapped_bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      throw OutOfMemoryError(fmt::format("host memory: {} MiB of addresses are not available: {}",
                                         size_bytes >> 20, memory_advice()));
    }
    data_ = static_cast<std::byte*>(data);
  }
  SparseHostBuffer(const SparseHostBuffer&) = delete;
  SparseHostBuffer& operator=(const SparseHostBuffer&) = delete;
  ~SparseHostBuffer() override { (void)munmap(data_, mapped_bytes()); }

  std::byte* data() noexcept override { return data_; }
  std::size_t size_bytes() const noexcept override { return size_bytes_; }
  Device device() const noexcept override { return {}; }

 private:
  std::size_t mapped_bytes() const noexcept { return std::max<std::size_t>(size_bytes_, 1); }

  std::byte* data_ = nullptr;
  std::size_t size_bytes_;
};

class MappedBuffer final : public Buffer {
 public:
  MappedBuffer(SharedMapping mapping, std::size_t offset_bytes)
      : mapping_(std::move(mapping)), offset_bytes_(offset_bytes) {}

  std::byte* data() noexcept override { return mapping_.data() + offset_bytes_; }
  std::size_t size_bytes() const noexcept override { return mapping_.size_bytes() - offset_bytes_; }
  Device device() const noexcept override { return {}; }

 private:
  SharedMapping mapping_;
  std::size_t offset_bytes_;
};

}  // namespace

std::size_t size_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBf16:
    case DType::kF16:
    case DType::kU16:
      return 2;
    case DType::kU8:
      return 1;
    case DType::kI64:
      return 8;
  }
  return 0;
}

std::string_view name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
    case DType::kU16:
      return "u16";
    case DType::kI64:
      return "i64";
  }
  return "?";
}

std::string to_string(Device device) {
  if (device.kind == DeviceKind::kCpu) return "cpu";
  return fmt::format("cuda:{}", device.index);
}

std::shared_ptr<Buffer> make_host_buffer(std::size_t size_bytes) {
  return std::make_shared<HostBuffer>(size_bytes);
}

std::shared_ptr<Buffer> make_sparse_host_buffer(std::size_t size_bytes) {
  return std::make_shared<SparseHostBuffer>(size_bytes);
}

std::shared_ptr<Buffer> make_mapped_buffer(SharedMapping mapping, std::size_t offset_bytes) {
  check(offset_bytes <= mapping.size_bytes(), "a buffer begins inside its mapping");
  return std::make_shared<MappedBuffer>(std::move(mapping), offset_bytes);
}

}  // namespace syncopate
