#include "worker/input/image/resize.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace syncopate {
namespace {

std::vector<std::uint8_t> resize(const std::vector<std::uint8_t>& pixels, std::int64_t width,
                                 std::int64_t height, int channels, std::int64_t out_width,
                                 std::int64_t out_height) {
  std::vector<std::uint8_t> out(out_width * out_height * channels);
  resize_pixels(pixels, width, height, channels, out_width, out_height, out);
  return out;
}

// tests/golden/make_resize_golden.py has made the numbers with tf.image.resize.
TEST(Resize, IsWithinOneStepOfTensorFlow) {
  std::ifstream in(SYNCOPATE_GOLDEN_DIR "/resize.txt");
  ASSERT_TRUE(in);
  int num_cases = 0;
  std::string word;
  while (in >> word) {
    ASSERT_EQ(word, "in");
    std::int64_t height = 0;
    std::int64_t width = 0;
    int channels = 0;
    in >> height >> width >> channels;
    std::vector<std::uint8_t> pixels(height * width * channels);
    for (std::uint8_t& pixel : pixels) {
      int value = 0;
      in >> value;
      pixel = static_cast<std::uint8_t>(value);
    }
    std::int64_t out_height = 0;
    std::int64_t out_width = 0;
    in >> word >> out_height >> out_width;
    ASSERT_EQ(word, "out");
    const auto out = resize(pixels, width, height, channels, out_width, out_height);
    for (std::size_t i = 0; i < out.size(); ++i) {
      int expected = 0;  // in 1/1000
      in >> expected;
      EXPECT_LE(std::abs(out[i] * 1000 - expected), 1000)
          << "case " << num_cases << ", value " << i;
    }
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 10);
}

TEST(Resize, CopiesAPictureOfTheSameSize) {
  const std::vector<std::uint8_t> pixels = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(resize(pixels, 3, 2, 1, 3, 2), pixels);
}

TEST(Resize, TakesTheMiddleOfTwoPixels) {
  EXPECT_EQ(resize({10, 20, 40, 50}, 4, 1, 1, 2, 1), (std::vector<std::uint8_t>{15, 45}));
}

TEST(Resize, RepeatsTheEdgeBeyondTheFirstAndLastCentre) {
  // The centres of four pixels lie at -1/4, 1/4, 3/4 and 5/4 of two.
  EXPECT_EQ(resize({0, 100}, 2, 1, 1, 4, 1), (std::vector<std::uint8_t>{0, 25, 75, 100}));
}

TEST(Resize, IsTheSameInBothAxes) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 7 * 5; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 89));
  std::vector<std::uint8_t> transposed(pixels.size());
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 7; ++x) transposed[x * 5 + y] = pixels[y * 7 + x];
  }
  const auto out = resize(pixels, 7, 5, 1, 4, 9);
  const auto out_transposed = resize(transposed, 5, 7, 1, 9, 4);
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 4; ++x) EXPECT_EQ(out[y * 4 + x], out_transposed[x * 9 + y]);
  }
}

TEST(Resize, DoesNotLookBeyondItsWindow) {
  // Columns 1 and 2 of a row of four, made twice as wide.
  std::vector<std::uint8_t> out(4);
  Resizer resizer({1, 2}, {0, 1}, 4, 1, 1, out);
  EXPECT_EQ(resizer.first_column(), 1);
  EXPECT_EQ(resizer.last_column(), 2);
  const std::vector<std::uint8_t> row = {0, 100};
  resizer.add_row(row.data());
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0, 25, 75, 100}));
}

TEST(Resize, PlacesAWindowInARowOfHalfTheWidth) {
  // Stored columns 2 to 5 are reduced columns 1 and 2.
  std::vector<std::uint8_t> out(2);
  Resizer resizer({2, 4, 2}, {0, 1, 1}, 2, 1, 1, out);
  EXPECT_EQ(resizer.first_column(), 1);
  EXPECT_EQ(resizer.last_column(), 2);
  const std::vector<std::uint8_t> row = {7, 9};
  resizer.add_row(row.data());
  EXPECT_EQ(out, (std::vector<std::uint8_t>{7, 9}));
}

}  // namespace
}  // namespace syncopate
