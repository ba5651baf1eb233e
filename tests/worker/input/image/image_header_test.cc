#include "worker/input/image/image_header.h"

#include <gtest/gtest.h>

#include <string>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/image/encoded_samples.h"

namespace syncopate {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string error_of(std::span<const std::byte> file) {
  return message_of<FileError>([&] { read_image_header(file, "x.jpg"); });
}

TEST(ImageHeader, SaysTheSizeOfAJpegFile) {
  for (const bool progressive : {false, true}) {
    const ImageHeader header =
        read_image_header(make_jpeg(make_picture(31, 17), {.progressive = progressive}), "x");
    EXPECT_EQ(header.format, ImageFormat::kJpeg);
    EXPECT_EQ(header.width, 31);
    EXPECT_EQ(header.height, 17);
    EXPECT_EQ(header.exif_orientation, 1);
  }
}

TEST(ImageHeader, SaysTheSizeOfAPngFile) {
  const ImageHeader header = read_image_header(make_png(make_picture(31, 17)), "x");
  EXPECT_EQ(header.format, ImageFormat::kPng);
  EXPECT_EQ(header.width, 31);
  EXPECT_EQ(header.height, 17);
}

TEST(ImageHeader, FindsEveryExifOrientation) {
  const Picture picture = make_picture(8, 8);
  for (int exif = 1; exif <= 8; ++exif) {
    for (const bool big_endian : {false, true}) {
      const FileBytes file =
          make_jpeg(picture, {.exif_orientation = exif, .big_endian_exif = big_endian});
      EXPECT_EQ(read_image_header(file, "x").exif_orientation, exif);
    }
    const FileBytes png = make_png(picture, {.exif_orientation = exif});
    EXPECT_EQ(read_image_header(png, "x").exif_orientation, exif);
  }
}

TEST(ImageHeader, NamesWhatIsNoPicture) {
  EXPECT_EQ(error_of({}), "x.jpg: expected a JPEG or PNG file, found an empty file at byte 0");
  EXPECT_EQ(error_of(bytes_of("  <!DOCTYPE html><html>")),
            "x.jpg: expected a JPEG or PNG file, found HTML at byte 0");
  EXPECT_EQ(error_of(bytes_of("GIF89a...")),
            "x.jpg: expected a JPEG or PNG file, found a GIF file at byte 0");
  EXPECT_EQ(error_of(bytes_of("RIFF1234WEBPVP8 ")),
            "x.jpg: expected a JPEG or PNG file, found a WebP file at byte 0");
  EXPECT_EQ(error_of(bytes_of("no")),
            "x.jpg: expected a JPEG or PNG file, found a file that starts with the bytes 6e 6f at "
            "byte 0");
}

TEST(ImageHeader, RefusesTooManyPixels) {
  FileBytes jpeg = make_jpeg(make_picture(8, 8));
  // The frame header FF C0, its length, 8 bits, then height and width.
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xFF} && jpeg[i + 1] == std::byte{0xC0}) {
      for (std::size_t k = i + 5; k < i + 9; ++k) jpeg[k] = std::byte{0xEA};
    }
  }
  EXPECT_TRUE(contains(error_of(jpeg), "60138 x 60138 pixels, more than the 134 million"));
  FileBytes png = make_png(make_picture(8, 8));
  png[16] = std::byte{0x7F};
  EXPECT_TRUE(contains(error_of(png), "more than the 134 million"));
}

TEST(ImageHeader, RefusesTwelveBitsPerSample) {
  FileBytes jpeg = make_jpeg(make_picture(8, 8));
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xFF} && jpeg[i + 1] == std::byte{0xC0}) jpeg[i + 4] = std::byte{12};
  }
  EXPECT_TRUE(contains(error_of(jpeg), "12 bits per JPEG sample; 8 are supported"));
}

}  // namespace
}  // namespace syncopate
