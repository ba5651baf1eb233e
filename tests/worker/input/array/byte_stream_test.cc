#include "worker/input/array/byte_stream.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

// Returns bytes that are long enough for several blocks; half of them are compressible.
Bytes sample_bytes() {
  Bytes bytes(3000);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    state = state * 1664525U + 1013904223U;
    bytes[i] = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

Bytes unpack(const std::filesystem::path& path) {
  return read_up_to(*open_byte_stream(path), 1 << 20);
}

Bytes pack(const std::string& suffix, const Bytes& bytes) {
  if (suffix == ".gz") return gzip(bytes);
  if (suffix == ".zst") return zstd(bytes);
  return bytes;
}

class PackedFile : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / (std::string("file") + GetParam());
};

TEST_P(PackedFile, UnpacksToTheOriginalBytes) {
  write_file(path_, pack(GetParam(), sample_bytes()));
  EXPECT_EQ(unpack(path_), sample_bytes());
}

TEST_P(PackedFile, MayConsistOfSeveralParts) {
  Bytes twice = pack(GetParam(), sample_bytes());
  const Bytes once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  write_file(path_, twice);
  EXPECT_EQ(unpack(path_).size(), 6000U);
}

TEST_P(PackedFile, StopsAtTheRequestedSize) {
  write_file(path_, pack(GetParam(), sample_bytes()));
  EXPECT_EQ(read_up_to(*open_byte_stream(path_), 100).size(), 100U);
}

INSTANTIATE_TEST_SUITE_P(ByteStream, PackedFile, testing::Values("", ".gz", ".zst"));

class DamagedFile : public PackedFile {};

TEST_P(DamagedFile, IsRefusedWhereverItIsCut) {
  const Bytes packed = pack(GetParam(), sample_bytes());
  for (std::size_t size = 0; size < packed.size(); ++size) {
    write_file(path_, std::span(packed).first(size));
    const std::string message = message_of<FileError>([&] { unpack(path_); });
    ASSERT_TRUE(contains(message, path_.string() + " is cut short"))
        << "cut at " << size << ": '" << message << "'";
  }
}

TEST_P(DamagedFile, IsRefusedOrUnchangedAfterAnyFlippedByte) {
  const Bytes packed = pack(GetParam(), sample_bytes());
  int refused = 0;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    Bytes flipped = packed;
    flipped[i] ^= 0x41;
    write_file(path_, flipped);
    try {
      ASSERT_EQ(unpack(path_), sample_bytes()) << "byte " << i;
    } catch (const FileError&) {
      ++refused;
    }
  }
  // Only a change of gzip's time, system and file-type marks may stay undetected.
  EXPECT_GE(refused, static_cast<int>(packed.size()) - 8);
}

TEST_P(DamagedFile, IsRefusedWithGarbageBehindIt) {
  Bytes packed = pack(GetParam(), sample_bytes());
  packed.insert(packed.end(), {'g', 'a', 'r', 'b', 'a', 'g', 'e', '!'});
  write_file(path_, packed);
  EXPECT_THROW(unpack(path_), FileError);
}

INSTANTIATE_TEST_SUITE_P(ByteStream, DamagedFile, testing::Values(".gz", ".zst"));

TEST(ByteStream, NamesAMissingFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "absent";
  const std::string message = message_of<FileError>([&] { open_byte_stream(path); });
  EXPECT_TRUE(contains(message, path.string() + ": No such file"));
}

TEST(ByteStream, DistinguishesMissingFromUnreadableFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(find_packed(folder.path(), "images"), std::nullopt);
  std::filesystem::create_symlink("nowhere", folder.path() / "images.gz");
  const auto look = [&] { find_packed(folder.path(), "images"); };
  EXPECT_TRUE(contains(message_of<FileError>(look), "a link to nothing"));
  std::filesystem::create_directory(folder.path() / "images");
  EXPECT_TRUE(contains(message_of<FileError>(look), "expected a file"));
  // The path is longer than any path may be, so that not even root can look for the file.
  const std::filesystem::path unreadable = folder.path() / std::string(5000, 'x');
  const std::string message = message_of<FileError>([&] { find_packed(unreadable, "images"); });
  EXPECT_TRUE(contains(message, "File name too long"));
}

TEST(ByteStream, DoesNotTakeAFolderForAFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(open_byte_stream(folder.path()), FileError);
}

}  // namespace
}  // namespace syncopate
