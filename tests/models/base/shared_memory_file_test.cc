#include "models/base/shared_memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

constexpr std::size_t kBytes = 3 * 4096;

std::byte byte_of(int value) { return static_cast<std::byte>(value); }

TEST(SharedMemoryFile, IsSharedByAllItsMappings) {
  const FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  const SharedMapping one(file.get(), kBytes, "a test");
  const SharedMapping other(file.get(), kBytes, "a test");
  ASSERT_NE(one.data(), other.data());
  EXPECT_EQ(other.data()[kBytes - 1], byte_of(0));
  one.data()[kBytes - 1] = byte_of(7);
  EXPECT_EQ(other.data()[kBytes - 1], byte_of(7));
}

TEST(SharedMemoryFile, CannotBeResized) {
  const FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  EXPECT_EQ(ftruncate(file.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(file.get(), 2 * kBytes), -1);
  EXPECT_TRUE(is_sealed_against_shrinking(file.get()));
}

TEST(SealedAgainstShrinking, IsFalseForFilesThatCanBeTruncated) {
  const FileDescriptor open_ended(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(is_sealed_against_shrinking(open_ended.get()));
  const FileDescriptor ordinary(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(is_sealed_against_shrinking(ordinary.get()));
}

TEST(SharedMapping, OutlivesTheDescriptorAndAMove) {
  FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  SharedMapping first(file.get(), kBytes, "a test");
  first.data()[0] = byte_of(3);
  file.reset();
  const SharedMapping second(std::move(first));
  EXPECT_EQ(second.data()[0], byte_of(3));
  EXPECT_EQ(second.size_bytes(), kBytes);
}

TEST(SharedMapping, ThrowsOutOfMemoryWhenTheMachineLacksTheMemory) {
  constexpr std::size_t kTooMany = std::size_t{1} << 60;
  EXPECT_TRUE(contains(message_of<OutOfMemoryError>([&] {
                         const FileDescriptor file =
                             make_shared_memory_file(kTooMany, "a test's numbers");
                         const SharedMapping mapping(file.get(), kTooMany, "a test's numbers");
                       }),
                       "MiB for a test's numbers are not available"));
}

TEST(ReservePages, AllocatesThePagesBeforeTheyAreWritten) {
  const FileDescriptor file = make_shared_memory_file(kBytes, "a test");
  const SharedMapping mapping(file.get(), kBytes, "a test");
  EXPECT_EQ(lseek(file.get(), 0, SEEK_DATA), -1);  // the file has no allocated page yet
  reserve_pages(file.get(), mapping, 4096, 4096, "a test");
  EXPECT_NE(lseek(file.get(), 0, SEEK_DATA), -1);
}

TEST(WholeHugePages, RoundsUp) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  EXPECT_EQ(whole_huge_pages(0), 0U);
  EXPECT_EQ(whole_huge_pages(1), kHugePage);
  EXPECT_EQ(whole_huge_pages(kHugePage), kHugePage);
}

}  // namespace
}  // namespace syncopate
