#include "models/tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"
#include "models/tensor/tensor.h"

namespace syncopate {
namespace {

TEST(HostBuffer, IsZeroedAndAligned) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20}) {
    const auto buffer = make_host_buffer(size);
    EXPECT_EQ(buffer->size_bytes(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % kAlignmentBytes, 0U);
    EXPECT_TRUE(std::all_of(buffer->data(), buffer->data() + size,
                            [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(HostBuffer, RefusesASizeThatOverflows) {
  EXPECT_THROW(make_host_buffer(std::numeric_limits<std::size_t>::max()), OutOfMemoryError);
}

TEST(Device, HasTheNameThatTheCommandLineUses) {
  EXPECT_EQ(to_string(Device{}), "cpu");
  EXPECT_EQ(to_string(Device{DeviceKind::kCuda, 1}), "cuda:1");
}

constexpr std::size_t kBytes = 4096;

SharedMapping mapping_of(const FileDescriptor& file) {
  return SharedMapping(file.get(), kBytes, "a test");
}

TEST(MappedBuffer, StartsAtAnOffsetOfTheSharedMemory) {
  const FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  const SharedMapping all = mapping_of(file);
  const auto buffer = make_mapped_buffer(mapping_of(file), 256);
  EXPECT_EQ(buffer->size_bytes(), kBytes - 256);
  Tensor(buffer, 0, {4}, DType::kF32).f32()[0] = 1.0F;  // bytes 0x3f800000, little-endian
  EXPECT_EQ(all.data()[256 + 3], static_cast<std::byte>(0x3f));
}

TEST(MappedBuffer, RefusesAnOffsetOutsideOfTheMapping) {
  const FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  EXPECT_THROW((void)make_mapped_buffer(mapping_of(file), kBytes + 1), InternalError);
}

}  // namespace
}  // namespace syncopate
