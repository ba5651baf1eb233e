// Tests of npy:DIR.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "tests/worker/input/packed_files.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

class NpyFolder : public testing::Test {
 protected:
  // Training samples 1 to 6 and 7 to 12, test sample 13 to 18: images of 2 x 3 grey pixels.
  NpyFolder() {
    put("x_train", "|u1", "(2, 2, 3)", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    put("y_train", "|u1", "(2,)", {0, 4});
    put("x_test", "|u1", "(1, 2, 3)", {13, 14, 15, 16, 17, 18});
    put("y_test", "<i8", "(1,)", bytes_of<std::int64_t>({2}));
  }

  void put(const std::string& name, std::string_view descr, std::string_view shape,
           const Bytes& elements) {
    write_file(folder_.path() / (name + ".npy"), npy_bytes(descr, shape, elements));
  }
  // Writes all samples with one type and shape of a sample: "2, 3".
  void put_samples(std::string_view descr, std::string_view sample, std::size_t sample_bytes) {
    put("x_train", descr, "(2, " + std::string(sample) + ")", Bytes(2 * sample_bytes));
    put("x_test", descr, "(1, " + std::string(sample) + ")", Bytes(sample_bytes));
  }
  DataSplits open() const { return open_dataset("npy:" + folder_.path().string(), {}); }
  std::string error() const {
    return message_of<Error>([&] { open(); });
  }
  Shape shape() const { return open().train->spec().inputs[0].shape; }

  TemporaryFolder folder_;
};

// Reads a sample and returns its label.
template <typename T>
std::int32_t read(const Dataset& dataset, std::int64_t index, std::vector<T>& values,
                  const Draw& draw = {}) {
  std::int32_t label = -1;
  const std::array inputs = {std::as_writable_bytes(std::span(values))};
  dataset.read(index, draw, {inputs, std::as_writable_bytes(std::span(&label, 1))});
  return label;
}

TEST_F(NpyFolder, NamesAValueThatIsNotFinite) {
  put_samples("<f4", "2", 2 * sizeof(float));
  put("x_train", "<f4", "(2, 2)", bytes_of<float>({1, 2, 3, std::nanf("")}));
  const DataSplits data = open();
  std::vector<float> values(2);
  EXPECT_EQ(read(*data.train, 0, values), 0);
  const std::string error = message_of<FileError>([&] { read(*data.train, 1, values); });
  EXPECT_TRUE(error.starts_with((folder_.path() / "x_train.npy").string() +
                                ": value 1 of row 1, at byte 140, is nan; expected finite numbers"))
      << error;
}

TEST_F(NpyFolder, HasTheSamplesAndLabelsOfItsArrays) {
  const DataSplits data = open();
  EXPECT_EQ(data.name, "npy");
  ASSERT_EQ(data.train->size(), 2);
  ASSERT_EQ(data.test->size(), 1);
  EXPECT_EQ(data.validation, nullptr);
  EXPECT_EQ(data.train->spec().inputs[0].shape, (Shape{2, 3, 1}));
  EXPECT_EQ(data.train->spec().num_classes, 5);
  Bytes pixels(6);
  EXPECT_EQ(read(*data.train, 1, pixels), 4);
  EXPECT_EQ(pixels, (Bytes{7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(read(*data.test, 0, pixels), 2);
  EXPECT_EQ(pixels, (Bytes{13, 14, 15, 16, 17, 18}));
}

TEST_F(NpyFolder, CountsClassesOverAllSplits) {
  put("y_test", "|u1", "(1,)", {7});
  EXPECT_EQ(open().train->spec().num_classes, 8);
}

TEST_F(NpyFolder, MayHaveAValidationSplit) {
  put("x_val", "|u1", "(1, 2, 3)", {1, 1, 1, 2, 2, 2});
  EXPECT_TRUE(contains(error(), "has no y_val.npy"));
  put("y_val", "|u1", "(1,)", {9});
  const DataSplits data = open();
  ASSERT_NE(data.validation, nullptr);
  Bytes pixels(6);
  EXPECT_EQ(read(*data.validation, 0, pixels), 9);
  EXPECT_EQ(data.train->spec().num_classes, 10);
}

TEST_F(NpyFolder, MayHaveImagesWithChannelsOrVectors) {
  put_samples("|u1", "1, 2, 3", 6);
  EXPECT_EQ(shape(), (Shape{1, 2, 3}));
  put_samples("|u1", "6", 6);
  EXPECT_EQ(shape(), (Shape{6}));
}

TEST_F(NpyFolder, KeepsTheTypeOfItsSamples) {
  put("x_train", "<u2", "(2, 1, 2)", bytes_of<std::uint16_t>({1, 2, 3, 65535}));
  put("x_test", "<u2", "(1, 1, 2)", bytes_of<std::uint16_t>({5, 6}));
  std::vector<std::uint16_t> words(2);
  EXPECT_EQ(read(*open().train, 1, words), 4);
  EXPECT_EQ(words, (std::vector<std::uint16_t>{3, 65535}));

  put("x_train", "<f4", "(2, 2)", bytes_of<float>({1, 2, 3, -0.5F}));
  put("x_test", "<f4", "(1, 2)", bytes_of<float>({5, 6}));
  std::vector<float> floats(2);
  EXPECT_EQ(read(*open().train, 1, floats), 4);
  EXPECT_EQ(floats, (std::vector<float>{3, -0.5F}));
}

TEST_F(NpyFolder, IsAugmentedLikeOtherImages) {
  Bytes pixels(6);
  read(*open().train, 0, pixels, {.kind = Augment::kCropFlip, .flip = true});
  EXPECT_EQ(pixels, (Bytes{3, 2, 1, 6, 5, 4}));
}

TEST_F(NpyFolder, NormalisesPixelsByTheTrainingSamplesChannels) {
  // Channel 0 has 0 and 255, channel 1 has 51 everywhere, and the test samples do not count.
  put("x_train", "|u1", "(2, 1, 1, 2)", {0, 51, 255, 51});
  put("x_test", "|u1", "(1, 1, 1, 2)", {9, 9});
  const DataSplits data = open();
  EXPECT_EQ(data.mean, (std::vector<float>{0.5F, 0.2F}));
  EXPECT_EQ(data.stddev, (std::vector<float>{0.5F, 1.0F}));
}

TEST_F(NpyFolder, NormalisesWordsByTheirRange) {
  put("x_train", "<u2", "(2, 1, 1)", bytes_of<std::uint16_t>({0, 65535}));
  put("x_test", "<u2", "(1, 1, 1)", bytes_of<std::uint16_t>({1}));
  const DataSplits data = open();
  EXPECT_EQ(data.mean, (std::vector<float>{0.5F}));
  EXPECT_EQ(data.stddev, (std::vector<float>{0.5F}));
}

TEST_F(NpyFolder, LeavesFloatsAsTheyAre) {
  put_samples("<f4", "1, 2, 2", 16);
  const DataSplits data = open();
  EXPECT_EQ(data.mean, (std::vector<float>{0, 0}));
  EXPECT_EQ(data.stddev, (std::vector<float>{1, 1}));
}

TEST_F(NpyFolder, NamesTheConversionOfOtherSamples) {
  for (const auto& [descr, name] : std::vector<std::pair<std::string, std::string>>{
           {"<f8", "float64"}, {"<i8", "int64"}, {"<f2", "float16"}, {"|b1", "bool"}}) {
    const std::size_t bytes = descr[2] == '1' ? 1 : descr[2] == '2' ? 2 : 8;
    put_samples(descr, "3", 3 * bytes);
    EXPECT_TRUE(contains(error(),
                         "x_train.npy: its samples are " + name +
                             "; expected uint8, uint16 or float32; convert them: python3 -c",
                         "a.astype('float32')"));
  }
}

TEST_F(NpyFolder, RefusesCountsThatDiffer) {
  put("y_train", "|u1", "(3,)", {0, 1, 2});
  EXPECT_TRUE(contains(error(), "x_train.npy has 2 samples, and ",
                       "y_train.npy has 3 labels; expected as many"));
}

TEST_F(NpyFolder, RefusesSplitsOfOtherShapesOrTypes) {
  put("x_test", "|u1", "(1, 3, 2)", Bytes(6));
  EXPECT_TRUE(contains(error(), "x_test.npy is [1, 3, 2] of uint8, and "));
  put("x_test", "<u2", "(1, 2, 3)", Bytes(12));
  EXPECT_TRUE(contains(error(), "expected samples of one shape and type"));
}

TEST_F(NpyFolder, RefusesOtherShapesOfSamples) {
  for (const char* sample : {"0", "1, 2, 2, 2", "0, 3"}) {
    put_samples("|u1", sample, sample[0] == '0' ? 0 : 8);
    EXPECT_TRUE(contains(error(), "expected [N, H, W], [N, H, W, C] or [N, F]"));
  }
  put("x_train", "|u1", "(2,)", Bytes(2));
  EXPECT_TRUE(contains(error(), "its shape is [2]; expected"));
}

TEST_F(NpyFolder, RefusesSplitsWithoutSamples) {
  put("x_test", "|u1", "(0, 2, 3)", {});
  put("y_test", "|u1", "(0,)", {});
  EXPECT_TRUE(contains(error(), "x_test.npy holds no samples"));
}

TEST_F(NpyFolder, WarnsOfChannelsThatComeFirst) {
  put_samples("|u1", "3, 8, 8", 192);
  testing::internal::CaptureStderr();
  open();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(text, "x_train.npy is [2, 3, 8, 8], read as [N, H, W, C]",
                       "a.transpose(0, 2, 3, 1)"));
}

TEST_F(NpyFolder, WarnsOfAnyNumberOfChannelsThatComeFirst) {
  const auto warning = [&](const std::string& shape, std::size_t size) {
    put_samples("|u1", shape, size);
    testing::internal::CaptureStderr();
    open();
    return testing::internal::GetCapturedStderr();
  };
  const std::string_view text = "read as [N, H, W, C]; if it is [N, C, H, W]: ";
  for (const auto& [shape, size] :
       {std::pair("2, 8, 8", 128), {"4, 8, 9", 288}, {"13, 8, 8", 832}, {"64, 8, 8", 4096}}) {
    EXPECT_TRUE(contains(warning(shape, static_cast<std::size_t>(size)), text)) << shape;
  }
  for (const auto& [shape, size] :
       {std::pair("8, 8, 3", 192), {"4, 8, 2", 64}, {"8, 8, 13", 832}, {"2, 8, 4", 64}}) {
    EXPECT_FALSE(contains(warning(shape, static_cast<std::size_t>(size)), text)) << shape;
  }
}

TEST_F(NpyFolder, NamesAMissingFileOrFolder) {
  std::filesystem::remove(folder_.path() / "y_train.npy");
  EXPECT_TRUE(contains(message_of<UsageError>([&] { open(); }),
                       "has no y_train.npy; expected x_train.npy"));
  EXPECT_TRUE(contains(message_of<UsageError>([] { open_dataset("npy:/nowhere", {}); }),
                       "there is no folder /nowhere; expected --data npy:DIR"));
}

TEST_F(NpyFolder, SaysHowToUnpackAnArchive) {
  const std::filesystem::path archive = folder_.path() / "mnist.npz";
  write_file(archive, Bytes(4));
  const std::string folder = (folder_.path() / "mnist").string();
  EXPECT_TRUE(contains(message_of<UsageError>([&] { open_dataset("npy:" + archive.string(), {}); }),
                       "python3 -m zipfile -e '" + archive.string() + "' '" + folder +
                           "', then give --data npy:" + folder));
}

TEST_F(NpyFolder, NamesAFileThatCannotBeRead) {
  std::filesystem::remove(folder_.path() / "x_test.npy");
  std::filesystem::create_symlink("nowhere", folder_.path() / "x_test.npy");
  EXPECT_TRUE(contains(error(), "x_test.npy: No such file"));
  if (::geteuid() == 0) GTEST_SKIP() << "root reads every file";
  std::filesystem::permissions(folder_.path() / "x_train.npy", std::filesystem::perms::none);
  EXPECT_TRUE(contains(error(), "x_train.npy: Permission denied"));
}

TEST_F(NpyFolder, HasFingerprintsOfItsSamples) {
  const DataSplits data = open();
  EXPECT_NE(data.train->fingerprint(0), data.train->fingerprint(1));
  EXPECT_EQ(data.train->fingerprint(1), open().train->fingerprint(1));
}

}  // namespace
}  // namespace syncopate
