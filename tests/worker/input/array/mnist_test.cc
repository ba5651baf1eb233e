#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/read_sample.h"
#include "worker/input/array/mnist.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

void append_big_endian(Bytes& bytes, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

// Returns an IDX file of images with pixels 0, 1, 2, ...
Bytes idx_images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns) {
  Bytes bytes;
  for (const std::uint32_t word : {0x803U, count, rows, columns}) append_big_endian(bytes, word);
  for (std::uint32_t i = 0; i < count * rows * columns; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(i));
  }
  return bytes;
}

Bytes idx_labels(const Bytes& labels) {
  Bytes bytes;
  append_big_endian(bytes, 0x801);
  append_big_endian(bytes, static_cast<std::uint32_t>(labels.size()));
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

// The fixture has a small valid MNIST folder, which the tests damage.
class MnistFolder : public testing::Test {
 protected:
  MnistFolder() {
    put("train-images-idx3-ubyte", idx_images(3, 2, 2));
    put("train-labels-idx1-ubyte", idx_labels({7, 0, 9}));
    put("t10k-images-idx3-ubyte", idx_images(1, 2, 2));
    put("t10k-labels-idx1-ubyte", idx_labels({5}));
  }

  void put(const std::string& name, const Bytes& bytes) {
    write_file(folder_.path() / name, bytes);
  }
  DataSplits open() const { return open_dataset("mnist:" + folder_.path().string(), {}); }
  std::string load_error() const {
    return message_of<Error>([&] { open(); });
  }

  TemporaryFolder folder_;
};

void expect_small_folder(const DataSplits& splits) {
  ASSERT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(sample_shape(*splits.train), (Shape{2, 2, 1}));
  std::array<std::uint8_t, 4> pixels{};
  EXPECT_EQ(read_sample(*splits.train, 2, pixels), 9);
  EXPECT_EQ(pixels, (std::array<std::uint8_t, 4>{8, 9, 10, 11}));
}

TEST_F(MnistFolder, IsReadPlain) { expect_small_folder(open()); }

TEST_F(MnistFolder, IsReadPackedAndWithDottedNames) {
  std::filesystem::remove(folder_.path() / "train-images-idx3-ubyte");
  std::filesystem::remove(folder_.path() / "train-labels-idx1-ubyte");
  put("train-images-idx3-ubyte.gz", gzip(idx_images(3, 2, 2)));
  put("train-labels.idx1-ubyte", idx_labels({7, 0, 9}));
  expect_small_folder(open());
}

TEST_F(MnistFolder, IsNamedWhenItIsMissing) {
  const std::string message = message_of<UsageError>(
      [&] { open_dataset("mnist:" + (folder_.path() / "absent").string(), {}); });
  EXPECT_TRUE(contains(message, "there is no folder " + (folder_.path() / "absent").string()));
}

TEST_F(MnistFolder, NamesAMissingFile) {
  std::filesystem::remove(folder_.path() / "t10k-labels-idx1-ubyte");
  const std::string message = message_of<UsageError>([&] { open(); });
  EXPECT_TRUE(contains(message, "has no t10k-labels-idx1-ubyte"));
}

TEST_F(MnistFolder, RefusesImagesUnderTheNameOfLabels) {
  put("train-labels-idx1-ubyte", idx_images(3, 2, 2));
  EXPECT_TRUE(contains(load_error(),
                       "train-labels-idx1-ubyte has the magic number 0x00000803; expected "
                       "0x00000801"));
}

TEST_F(MnistFolder, NamesTheLabelThatIsOutOfRange) {
  put("train-labels-idx1-ubyte", idx_labels({7, 10, 9}));
  EXPECT_TRUE(contains(load_error(), "train-labels-idx1-ubyte: label 1 is 10; expected 0 to 9"));
}

TEST_F(MnistFolder, RefusesCountsThatDiffer) {
  put("train-labels-idx1-ubyte", idx_labels({7, 0}));
  EXPECT_TRUE(contains(load_error(), "holds 3 images but", "holds 2 labels"));
}

TEST_F(MnistFolder, RefusesSplitsOfDifferentShape) {
  put("t10k-images-idx3-ubyte", idx_images(1, 2, 3));
  EXPECT_TRUE(contains(load_error(), "expected the same shape"));
}

TEST_F(MnistFolder, RefusesEmptyImages) {
  put("train-images-idx3-ubyte", idx_images(3, 0, 2));
  EXPECT_TRUE(contains(load_error(), "announces images of 0 x 2"));
}

TEST_F(MnistFolder, RefusesAFileWithoutSamples) {
  put("train-images-idx3-ubyte", idx_images(0, 2, 2));
  EXPECT_TRUE(contains(load_error(), "holds no samples"));
}

TEST_F(MnistFolder, RefusesBytesAfterTheEnd) {
  Bytes bytes = idx_images(3, 2, 2);
  bytes.push_back(0);
  put("train-images-idx3-ubyte", bytes);
  EXPECT_TRUE(contains(load_error(), "goes on after the 28 bytes"));
}

TEST_F(MnistFolder, NamesTheMissingBytesWhereverAFileIsCut) {
  for (const auto& [name, whole] :
       {std::pair{std::string("train-images-idx3-ubyte"), idx_images(3, 2, 2)},
        std::pair{std::string("train-labels-idx1-ubyte"), idx_labels({7, 0, 9})}}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      put(name, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      const std::string message = message_of<FileError>([&] { open(); });
      ASSERT_TRUE(contains(message, name + " is cut short")) << size << message;
      ASSERT_TRUE(contains(message, "found " + std::to_string(size)));
    }
    put(name, whole);
  }
}

// A header may announce 2^56 bytes: memory for them must not be allocated before the bytes are
// there.
TEST_F(MnistFolder, RefusesEveryFlippedHeaderByte) {
  const Bytes whole = idx_images(3, 2, 2);
  for (std::size_t i = 0; i < 16; ++i) {
    for (const int mask : {0x01, 0x80, 0xFF}) {
      Bytes flipped = whole;
      flipped[i] = static_cast<std::uint8_t>(flipped[i] ^ mask);
      put("train-images-idx3-ubyte", flipped);
      ASSERT_THROW(open(), FileError) << "byte " << i << " mask " << mask;
    }
  }
}

TEST(Mnist, HoldsTheOriginalImages) {
  const std::filesystem::path folder =
      std::filesystem::path(SYNCOPATE_SHARED_FOLDER) / "data" / "mnist";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "MNIST is not in " << folder << "; put its four files there to run this test";
  }
  const DataSplits splits = open_dataset("mnist:" + folder.string(), {});
  EXPECT_EQ(splits.train->size(), 60000);
  EXPECT_EQ(splits.test->size(), 10000);
  ASSERT_EQ(sample_shape(*splits.train), (Shape{28, 28, 1}));
  Bytes pixels(784);
  std::vector<std::int32_t> first;
  for (std::int64_t i = 0; i < 10; ++i) first.push_back(read_sample(*splits.train, i, pixels));
  EXPECT_EQ(first, (std::vector<std::int32_t>{5, 0, 4, 1, 9, 2, 1, 3, 1, 4}));
  double sum = 0;
  std::vector<int> per_class(10);
  for (std::int64_t i = 0; i < 60000; ++i) {
    ++per_class.at(static_cast<std::size_t>(read_sample(*splits.train, i, pixels)));
    sum += std::accumulate(pixels.begin(), pixels.end(), 0);
  }
  EXPECT_EQ(per_class,
            (std::vector<int>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
  EXPECT_NEAR(sum / 255 / 60000 / 784, splits.mean[0], 1e-4);
}

}  // namespace
}  // namespace syncopate
