#include "models/tensor/mapped_buffer.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "models/base/errors.h"
#include "models/tensor/tensor.h"

namespace syncopate {
namespace {

constexpr std::size_t kBytes = 4096;

SharedMapping mapping_of(const FileDescriptor& file) {
  return SharedMapping(file.get(), kBytes, "a test");
}

TEST(MappedBuffer, IsSharedMemoryBehindAnOffset) {
  const FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  const SharedMapping all = mapping_of(file);
  const auto buffer = make_mapped_buffer(mapping_of(file), 256);
  EXPECT_EQ(buffer->size_bytes(), kBytes - 256);
  Tensor(buffer, 0, {4}, DType::kF32).f32()[0] = 1.0F;  // 0x3f800000, little-endian
  EXPECT_EQ(all.data()[256 + 3], static_cast<std::byte>(0x3f));
}

TEST(MappedBuffer, BeginsWithinItsMapping) {
  const FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  EXPECT_THROW((void)make_mapped_buffer(mapping_of(file), kBytes + 1), InternalError);
}

}  // namespace
}  // namespace syncopate
