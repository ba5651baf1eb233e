#include "worker/input/image/orientation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace syncopate {
namespace {

// Shows the stored picture "ab / cd / ef" (2 columns, 3 rows) in this orientation, as one text.
std::string shown(const Orientation& orientation) {
  const std::string stored = "abcdef";
  std::string out(6, ' ');
  orient_pixels({reinterpret_cast<const std::uint8_t*>(stored.data()), 6}, 2, 3, 1, orientation,
                {reinterpret_cast<std::uint8_t*>(out.data()), 6});
  const std::size_t width = orientation.transposed ? 3 : 2;
  for (std::size_t i = width; i < out.size(); i += width + 1) out.insert(i, "/");
  return out;
}

// The expected texts follow from the names of the values in the EXIF specification: where the
// stored first row and the stored first column are shown.
TEST(Orientation, TurnsAPictureAsExifDefines) {
  const std::vector<std::string> expected = {"ab/cd/ef", "ba/dc/fe", "fe/dc/ba", "ef/cd/ab",
                                             "ace/bdf",  "eca/fdb",  "fdb/eca",  "bdf/ace"};
  for (int exif = 1; exif <= 8; ++exif) {
    EXPECT_EQ(shown(Orientation::from_exif(exif)), expected[exif - 1]) << exif;
  }
}

TEST(Orientation, MirrorsWhatIsShown) {
  const std::vector<std::string> expected = {"ba/dc/fe", "ab/cd/ef", "ef/cd/ab", "fe/dc/ba",
                                             "eca/fdb",  "ace/bdf",  "bdf/ace",  "fdb/eca"};
  for (int exif = 1; exif <= 8; ++exif) {
    EXPECT_EQ(shown(Orientation::from_exif(exif).mirrored()), expected[exif - 1]) << exif;
  }
}

TEST(Orientation, FindsTheStoredRectangle) {
  // The shown pixel in the top right corner, of 2 x 3 stored pixels.
  const std::vector<PixelRectangle> expected = {{1, 0, 1, 1}, {0, 0, 1, 1}, {0, 2, 1, 1},
                                                {1, 2, 1, 1}, {0, 2, 1, 1}, {0, 0, 1, 1},
                                                {1, 0, 1, 1}, {1, 2, 1, 1}};
  for (int exif = 1; exif <= 8; ++exif) {
    const Orientation orientation = Orientation::from_exif(exif);
    const PixelRectangle corner = {orientation.transposed ? 2 : 1, 0, 1, 1};
    EXPECT_EQ(to_stored(corner, orientation, 2, 3), expected[exif - 1]) << exif;
  }
}

TEST(Orientation, TakesUnknownValuesAsUpright) {
  for (const int exif : {-1, 0, 9, 65535}) {
    EXPECT_TRUE(Orientation::from_exif(exif).is_identity()) << exif;
  }
}

TEST(ExifOrientation, IsOneForEveryTruncatedOrEmptyBlock) {
  const std::vector<std::uint8_t> block = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12,
                                           1,   3,   0,  1, 0, 0, 0, 6, 0, 0, 0};
  const auto bytes = std::as_bytes(std::span(block));
  EXPECT_EQ(exif_orientation(bytes), 6);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(exif_orientation(bytes.first(size)), 1) << size;
  }
}

}  // namespace
}  // namespace syncopate
