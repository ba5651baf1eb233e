#include "models/tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "models/base/errors.h"

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

TEST(Device, IsNamedAsOnTheCommandLine) {
  EXPECT_EQ(to_string(Device{}), "cpu");
  EXPECT_EQ(to_string(Device{DeviceKind::kCuda, 1}), "cuda:1");
}

}  // namespace
}  // namespace syncopate
