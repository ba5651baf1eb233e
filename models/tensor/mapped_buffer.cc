#include "models/tensor/mapped_buffer.h"

#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

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

std::shared_ptr<Buffer> make_mapped_buffer(SharedMapping mapping, std::size_t offset_bytes) {
  check(offset_bytes <= mapping.size_bytes(), "a buffer begins within its mapping");
  return std::make_shared<MappedBuffer>(std::move(mapping), offset_bytes);
}

}  // namespace syncopate
