#include "worker/input/pixel_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

constexpr PixelCacheKey kKey{3, 100};

Bytes payload() {
  Bytes bytes(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(7 * i);
  return bytes;
}

class PixelCache : public testing::Test {
 protected:
  std::size_t files() const {
    const auto entries = std::filesystem::directory_iterator(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "pixels-v3.u8";
};

TEST_F(PixelCache, ReturnsThePayloadAndLeavesNoTemporaryFile) {
  write_pixel_cache(path_, kKey, payload());
  const auto mapped = map_pixel_cache(path_, kKey);
  ASSERT_TRUE(mapped.has_value());
  EXPECT_EQ(Bytes(mapped->bytes.begin(), mapped->bytes.end()), payload());
  EXPECT_EQ(files(), 1U);
}

TEST_F(PixelCache, HasThePermissionsOfTheUmask) {
  const mode_t before = ::umask(0027);
  write_pixel_cache(path_, kKey, payload());
  ::umask(before);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms{0640});
}

TEST_F(PixelCache, CreatesItsFolder) {
  const auto deep = folder_.path() / "a/b/pixels.u8";
  write_pixel_cache(deep, kKey, payload());
  EXPECT_TRUE(map_pixel_cache(deep, kKey).has_value());
}

TEST_F(PixelCache, IsNothingWhenAbsent) { EXPECT_FALSE(map_pixel_cache(path_, kKey).has_value()); }

TEST_F(PixelCache, RejectsAnotherVersion) {
  write_pixel_cache(path_, {2, 100}, payload());
  EXPECT_FALSE(map_pixel_cache(path_, kKey).has_value());
}

TEST_F(PixelCache, RejectsAFileOfAnotherLength) {
  write_pixel_cache(path_, kKey, payload());
  Bytes whole = read_file(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(path_, std::span(whole).first(size));
    ASSERT_FALSE(map_pixel_cache(path_, kKey).has_value()) << size;
  }
  whole.push_back(0);
  write_file(path_, whole);
  EXPECT_FALSE(map_pixel_cache(path_, kKey).has_value());
}

TEST_F(PixelCache, RejectsEveryFlippedBit) {
  write_pixel_cache(path_, kKey, payload());
  const Bytes whole = read_file(path_);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1U << (bit % 8)));
    write_file(path_, flipped);
    ASSERT_FALSE(map_pixel_cache(path_, kKey).has_value()) << "bit " << bit;
  }
}

TEST_F(PixelCache, StaysMappedWhenTheFileIsReplaced) {
  write_pixel_cache(path_, kKey, payload());
  const auto mapped = map_pixel_cache(path_, kKey);
  write_pixel_cache(path_, kKey, Bytes(100, 1));
  EXPECT_EQ(Bytes(mapped->bytes.begin(), mapped->bytes.end()), payload());
}

TEST_F(PixelCache, MayBeWrittenByManyAtOnce) {
  {
    std::vector<std::jthread> writers;
    writers.reserve(8);
    for (int i = 0; i < 8; ++i) {
      writers.emplace_back([&] { write_pixel_cache(path_, kKey, payload()); });
    }
  }
  EXPECT_TRUE(map_pixel_cache(path_, kKey).has_value());
  EXPECT_EQ(files(), 1U);
}

TEST_F(PixelCache, NamesTheReasonWhenItCannotBeWritten) {
  write_file(folder_.path() / "file", Bytes{1});
  const std::string message = message_of<FileError>(
      [&] { write_pixel_cache(folder_.path() / "file/x.u8", kKey, payload()); });
  EXPECT_TRUE(contains(message, "create " + (folder_.path() / "file").string()));
}

TEST_F(PixelCache, LeavesNoTemporaryFileWhenTheRenameFails) {
  std::filesystem::create_directories(path_ / "occupied");
  EXPECT_THROW(write_pixel_cache(path_, kKey, payload()), FileError);
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace syncopate
