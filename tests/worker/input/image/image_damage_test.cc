// Every truncation and every bit flip of small files: an error that names file and offset, the same
// pixels, or (JPEG alone, which has no checksum) other pixels.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/image/encoded_samples.h"
#include "worker/input/image/image_decoder.h"

namespace syncopate {
namespace {

using Pixels = std::vector<std::uint8_t>;

// Returns the pixels, or nullopt for an error of the one form that errors about pictures have.
std::optional<Pixels> decode(std::span<const std::byte> file) {
  Pixels pixels(10 * 9 * 3);
  try {
    decode_image(file, "the file", read_image_header(file, "the file"), {.width = 10, .height = 9},
                 pixels);
  } catch (const FileError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("the file: ")) << text;
    EXPECT_TRUE(contains(text, " at byte "));
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return std::nullopt;
  }
  return pixels;
}

struct Sample {
  std::string name;
  FileBytes file;
  bool has_checksums;
};

std::vector<Sample> samples() {
  const Picture picture = make_picture(17, 12);
  return {{"baseline", make_jpeg(picture, {.exif_orientation = 6}), false},
          {"4:4:4 with restarts",
           make_jpeg(picture,
                     {.horizontal_sampling = 1, .vertical_sampling = 1, .restart_interval = 1}),
           false},
          {"progressive", make_jpeg(picture, {.progressive = true}), false},
          {"png", make_png(picture), true},
          {"interlaced palette",
           make_png(make_picture(17, 12, 1), {.interlaced = true, .palette = true}), true}};
}

TEST(DamagedImage, IsAnErrorOrTheSamePixelsWhenItIsCutShort) {
  for (const Sample& sample : samples()) {
    const auto whole = decode(sample.file);
    ASSERT_TRUE(whole) << sample.name;
    std::size_t num_errors = 0;
    for (std::size_t size = 0; size < sample.file.size(); ++size) {
      const auto pixels = decode(std::span(sample.file).first(size));
      if (!pixels) {
        ++num_errors;
      } else {
        EXPECT_EQ(pixels, whole) << sample.name << " cut at " << size;
      }
    }
    // What lies behind the last pixel may be missing: the end marker, or a checksum and IEND.
    EXPECT_GE(num_errors + 24, sample.file.size()) << sample.name;
  }
}

TEST(DamagedImage, IsAnErrorOrPixelsForEveryBitFlip) {
  for (const Sample& sample : samples()) {
    const auto whole = decode(sample.file);
    FileBytes file = sample.file;
    for (std::size_t i = 0; i < file.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        file[i] ^= std::byte{1} << bit;
        const auto pixels = decode(file);
        if (pixels && sample.has_checksums) {
          EXPECT_EQ(pixels, whole) << sample.name << ", byte " << i << ", bit " << bit;
        }
        file[i] = sample.file[i];
      }
    }
  }
}

TEST(DamagedImage, NamesTheOffsetAtWhichDataEnd) {
  const FileBytes file = make_jpeg(make_picture(64, 64));
  const std::size_t size = file.size() / 2;
  Pixels pixels(64 * 64 * 3);
  const auto part = std::span(file).first(size);
  EXPECT_EQ(message_of<FileError>([&] {
              decode_image(part, "dir/a.jpg", read_image_header(part, "a"),
                           {.width = 64, .height = 64}, pixels);
            }),
            "dir/a.jpg: the file ends before its last pixel at byte " + std::to_string(size));
}

TEST(DamagedImage, MayLackItsEndMarker) {
  const FileBytes file = make_jpeg(make_picture(17, 12));
  EXPECT_EQ(decode(std::span(file).first(file.size() - 2)), decode(file));
}

TEST(DamagedImage, MayHaveBytesBeforeItsEndMarker) {
  FileBytes file = make_jpeg(make_picture(17, 12));
  const auto whole = decode(file);
  file.insert(file.end() - 2, 3, std::byte{0});
  EXPECT_EQ(decode(file), whole);
}

// Returns where the bytes are in a file.
std::size_t find_bytes(const FileBytes& file, std::string_view bytes) {
  const auto* const begin = reinterpret_cast<const char*>(file.data());
  return std::string_view(begin, file.size()).find(bytes);
}

// Phones of Samsung write a spectral selection of 0 to 0 into the scan header of a baseline file.
TEST(DamagedImage, MayHaveAScanHeaderThatIsNotUsed) {
  for (const int at : {1, 2}) {  // the end of the spectral selection; the successive approximation
    FileBytes file = make_jpeg(make_picture(17, 12));
    const auto whole = decode(file);
    const std::size_t scan = find_bytes(file, "\xFF\xDA");
    const std::size_t selection = scan + 5 + 2 * std::to_integer<std::size_t>(file[scan + 4]);
    ASSERT_EQ(file[selection + 1], std::byte{63});
    file[selection + static_cast<std::size_t>(at)] = at == 1 ? std::byte{0} : std::byte{1};
    EXPECT_EQ(decode(file), whole) << at;
  }
}

TEST(DamagedImage, MayHaveBytesBetweenJpegSegments) {
  FileBytes file = make_jpeg(make_picture(17, 12));
  const auto whole = decode(file);
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(find_bytes(file, "\xFF\xDB")), 20,
              std::byte{0});
  EXPECT_EQ(decode(file), whole);
}

TEST(DamagedImage, MayHaveAWrongChecksumOfAPngChunkThatPixelsDoNotNeed) {
  FileBytes file = make_png(make_picture(17, 12));
  const auto whole = decode(file);
  const std::string_view text("\0\0\0\5tEXta\0b c\1\2\3\4", 17);
  constexpr std::ptrdiff_t kBehindHeader = 8 + 25;
  const auto bytes = std::as_bytes(std::span(text));
  file.insert(file.begin() + kBehindHeader, bytes.begin(), bytes.end());
  EXPECT_EQ(decode(file), whole);
  file.back() ^= std::byte{1};  // the checksum of IEND
  EXPECT_EQ(decode(file), whole);
  file[8 + 8 + 13] ^= std::byte{1};  // the checksum of the header
  EXPECT_EQ(decode(file), std::nullopt);
}

}  // namespace
}  // namespace syncopate
