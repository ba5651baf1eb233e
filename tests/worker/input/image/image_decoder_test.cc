#include "worker/input/image/image_decoder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/image/encoded_samples.h"
#include "worker/input/image/resize.h"

namespace syncopate {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels decode(const FileBytes& file, const DecodeOptions& options) {
  Pixels pixels(options.width * options.height * options.channels);
  decode_image(file, "x", read_image_header(file, "x"), options, pixels);
  return pixels;
}

// Cuts a rectangle out of a picture of this width.
Pixels cut(const Pixels& pixels, std::int64_t width, const PixelRectangle& part, int channels = 3) {
  Pixels out;
  for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
    const auto row = pixels.begin() + (y * width + part.x) * channels;
    out.insert(out.end(), row, row + part.width * channels);
  }
  return out;
}

double mean_difference(const Pixels& a, const Pixels& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

TEST(ImageDecoder, ReturnsThePixelsOfAPngFile) {
  const Picture picture = make_picture(13, 9);
  for (const bool interlaced : {false, true}) {
    for (const int bit_depth : {8, 16}) {
      const FileBytes file = make_png(picture, {.bit_depth = bit_depth, .interlaced = interlaced});
      EXPECT_EQ(decode(file, {.width = 13, .height = 9}), picture.pixels);
    }
  }
}

TEST(ImageDecoder, ExpandsGreyAndPalettesAndDropsOpacity) {
  for (const int channels : {1, 2, 4}) {
    const Picture picture = make_picture(13, 9, channels);
    const Pixels rgb = decode(make_png(picture), {.width = 13, .height = 9});
    for (std::size_t i = 0; i < 13 * 9; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(rgb[3 * i + c], picture.pixels[channels * i + (channels == 4 ? c : 0)]);
      }
    }
  }
  const Picture grey = make_picture(13, 9, 1);
  EXPECT_EQ(decode(make_png(grey, {.palette = true}), {.width = 13, .height = 9}),
            decode(make_png(grey), {.width = 13, .height = 9}));
  EXPECT_EQ(decode(make_png(grey), {.width = 13, .height = 9, .channels = 1}), grey.pixels);
}

TEST(ImageDecoder, ReturnsPixelsNearThoseOfAJpegFile) {
  const Picture picture = make_picture(40, 30);
  for (const bool progressive : {false, true}) {
    const FileBytes file = make_jpeg(picture, {.horizontal_sampling = 1,
                                               .vertical_sampling = 1,
                                               .quality = 98,
                                               .progressive = progressive});
    EXPECT_LT(mean_difference(decode(file, {.width = 40, .height = 30}), picture.pixels), 2);
  }
}

TEST(ImageDecoder, ExpandsGreyJpegFiles) {
  const Picture picture = make_picture(20, 10, 1);
  const FileBytes file = make_jpeg(picture);
  const Pixels grey = decode(file, {.width = 20, .height = 10, .channels = 1});
  const Pixels rgb = decode(file, {.width = 20, .height = 10});
  for (std::size_t i = 0; i < grey.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(rgb[3 * i + c], grey[i]);
  }
}

TEST(ImageDecoder, ConvertsCmykAsTensorFlowDoes) {
  Picture picture{8, 8, 4, {}};
  for (int i = 0; i < 64; ++i) picture.pixels.insert(picture.pixels.end(), {200, 100, 50, 128});
  const FileBytes file = make_jpeg(picture, {.quality = 100});
  const Pixels rgb = decode(file, {.width = 8, .height = 8});
  // Adobe's marker: a value is the amount of light, so that red is 200 * 128 / 255.
  EXPECT_NEAR(rgb[0], 100, 2);
  EXPECT_NEAR(rgb[1], 50, 2);
  EXPECT_NEAR(rgb[2], 25, 2);
  const Pixels grey = decode(file, {.width = 8, .height = 8, .channels = 1});
  EXPECT_NEAR(grey[63], 0.299 * 100 + 0.587 * 50 + 0.114 * 25, 2);
}

TEST(ImageDecoder, AppliesEachExifOrientationOnRequest) {
  const Picture picture = make_picture(16, 24);
  for (int exif = 1; exif <= 8; ++exif) {
    const Orientation orientation = Orientation::from_exif(exif);
    const std::int64_t width = orientation.transposed ? 24 : 16;
    const std::int64_t height = orientation.transposed ? 16 : 24;
    Pixels expected(picture.pixels.size());
    for (const FileBytes& file : {make_png(picture, {.exif_orientation = exif}),
                                  make_jpeg(picture, {.exif_orientation = exif})}) {
      const Pixels stored = decode(file, {.width = 16, .height = 24});
      orient_pixels(stored, 16, 24, 3, orientation, expected);
      EXPECT_EQ(decode(file, {.width = width, .height = height, .apply_exif = true}), expected);
      orient_pixels(stored, 16, 24, 3, orientation.mirrored(), expected);
      EXPECT_EQ(
          decode(file, {.width = width, .height = height, .apply_exif = true, .mirror = true}),
          expected);
    }
  }
}

TEST(ImageDecoder, CutsOutWhatIsShown) {
  const FileBytes file = make_png(make_picture(16, 24), {.exif_orientation = 6});
  const Pixels whole = decode(file, {.width = 24, .height = 16, .apply_exif = true});
  const PixelRectangle part = {3, 2, 10, 7};
  EXPECT_EQ(decode(file, {.width = 10, .height = 7, .crop = part, .apply_exif = true}),
            cut(whole, 24, part));
}

// The columns and rows that libjpeg skips must not change the others: smooth chroma upsampling
// reads neighbours.
TEST(ImageDecoder, DecodesAPartOfAJpegFileAsInTheWhole) {
  const Picture picture = make_picture(75, 62);
  for (const int horizontal : {1, 2, 4}) {
    for (const int vertical : {1, 2}) {
      for (const bool progressive : {false, true}) {
        const FileBytes file = make_jpeg(picture, {.horizontal_sampling = horizontal,
                                                   .vertical_sampling = vertical,
                                                   .progressive = progressive});
        const Pixels whole = decode(file, {.width = 75, .height = 62});
        for (const std::int64_t x : {0, 1, 15, 16, 17, 31, 32, 40}) {
          for (const std::int64_t y : {0, 1, 7, 8, 16, 17, 33}) {
            const PixelRectangle part = {x, y, 21, 19};
            EXPECT_EQ(decode(file, {.width = 21, .height = 19, .crop = part}), cut(whole, 75, part))
                << horizontal << "x" << vertical << " at " << x << ", " << y;
          }
        }
        const PixelRectangle corner = {74, 61, 1, 1};
        EXPECT_EQ(decode(file, {.width = 1, .height = 1, .crop = corner}), cut(whole, 75, corner));
      }
    }
  }
}

TEST(ImageDecoder, DecodesAtReducedScaleNearlyTheSamePicture) {
  // A ramp, on which averaging and picking pixels agree.
  Picture picture{203, 165, 3, {}};
  for (int y = 0; y < 165; ++y) {
    for (int x = 0; x < 203; ++x) {
      for (const int value : {x, y, (x + y) / 2}) {
        picture.pixels.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  const FileBytes file = make_jpeg(picture, {.quality = 98});
  for (const std::int64_t size : {100, 50, 25, 20, 7}) {
    const Pixels whole = decode(file, {.width = size, .height = size, .reduce = false});
    EXPECT_LT(mean_difference(decode(file, {.width = size, .height = size}), whole), 1.0) << size;
    const PixelRectangle part = {37, 21, 161, 141};
    EXPECT_LT(mean_difference(
                  decode(file, {.width = size, .height = size, .crop = part}),
                  decode(file, {.width = size, .height = size, .crop = part, .reduce = false})),
              1.0)
        << size;
  }
}

TEST(ImageDecoder, ResizesWhatItDecodes) {
  const Picture picture = make_picture(33, 21);
  Pixels expected(12 * 50 * 3);
  resize_pixels(picture.pixels, 33, 21, 3, 12, 50, expected);
  EXPECT_EQ(decode(make_png(picture), {.width = 12, .height = 50}), expected);
}

TEST(ImageDecoder, DecodesOnePixel) {
  const Picture picture{1, 1, 3, {9, 8, 7}};
  EXPECT_EQ(decode(make_png(picture), {.width = 2, .height = 1}), (Pixels{9, 8, 7, 9, 8, 7}));
  EXPECT_EQ(decode(make_jpeg(picture), {.width = 2, .height = 2}).size(), 12U);
}

TEST(ImageDecoder, RefusesTooManyScans) {
  const FileBytes file =
      make_jpeg(make_picture(8, 8, 1), {.progressive = true, .num_scans = 63 * 3 + 1});
  EXPECT_TRUE(contains(message_of<FileError>([&] { decode(file, {.width = 8, .height = 8}); }),
                       "more than 100 scans"));
}

}  // namespace
}  // namespace syncopate
