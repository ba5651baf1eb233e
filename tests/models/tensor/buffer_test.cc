#include "models/tensor/buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

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

// Returns the pages of a buffer that are in memory.
std::size_t resident_pages(const std::shared_ptr<Buffer>& buffer) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((buffer->size_bytes() + page - 1) / page);
  EXPECT_EQ(mincore(buffer->data(), buffer->size_bytes(), pages.data()), 0);
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](unsigned char flags) { return (flags & 1U) != 0; }));
}

TEST(SparseHostBuffer, TakesMemoryWhereItIsWritten) {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  const auto buffer = make_sparse_host_buffer(kSize);
  EXPECT_EQ(buffer->size_bytes(), kSize);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % kAlignmentBytes, 0U);
  EXPECT_EQ(resident_pages(buffer), 0U);
  buffer->data()[kSize / 2] = std::byte{1};
  EXPECT_EQ(resident_pages(buffer), 1U);
  EXPECT_EQ(buffer->data()[kSize / 2 + 1], std::byte{0});
}

TEST(SparseHostBuffer, MayBeEmpty) { EXPECT_EQ(make_sparse_host_buffer(0)->size_bytes(), 0U); }

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
