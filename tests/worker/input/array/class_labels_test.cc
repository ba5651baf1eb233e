#include "worker/input/array/class_labels.h"

#include <gtest/gtest.h>

#include <limits>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

class LabelsOfAFile : public testing::Test {
 protected:
  std::vector<std::int32_t> read(std::string_view descr, std::string_view shape,
                                 const Bytes& elements) {
    write_file(path_, npy_bytes(descr, shape, elements));
    return read_npy_labels(NpyFile(path_));
  }
  std::string error(std::string_view descr, std::string_view shape, const Bytes& elements) {
    return message_if_thrown<FileError>([&] { read(descr, shape, elements); });
  }
  template <typename Number>
  std::vector<std::int32_t> read_numbers(std::string_view descr) {
    return read(descr, "(3,)", bytes_of<Number>({0, 9, 127}));
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "y.npy";
};

TEST_F(LabelsOfAFile, MayHaveAnyIntegerType) {
  const std::vector<std::int32_t> labels = {0, 9, 127};
  EXPECT_EQ(read_numbers<std::int8_t>("|i1"), labels);
  EXPECT_EQ(read_numbers<std::int16_t>("<i2"), labels);
  EXPECT_EQ(read_numbers<std::int32_t>("<i4"), labels);
  EXPECT_EQ(read_numbers<std::int64_t>("<i8"), labels);
  EXPECT_EQ(read_numbers<std::uint8_t>("|u1"), labels);
  EXPECT_EQ(read_numbers<std::uint16_t>("<u2"), labels);
  EXPECT_EQ(read_numbers<std::uint32_t>("<u4"), labels);
  EXPECT_EQ(read_numbers<std::uint64_t>("<u8"), labels);
}

TEST_F(LabelsOfAFile, MayBeAColumn) {
  EXPECT_EQ(read("|u1", "(3, 1)", {4, 5, 6}), (std::vector<std::int32_t>{4, 5, 6}));
}

TEST_F(LabelsOfAFile, AreReadInChunks) {
  Bytes many(200001);
  many[200000] = 3;
  const std::vector<std::int32_t> labels = read("|u1", "(200001,)", many);
  ASSERT_EQ(labels.size(), many.size());
  EXPECT_EQ(labels.back(), 3);
}

TEST_F(LabelsOfAFile, AreRefusedOutOfRangeWithTheirByte) {
  const std::string negative = error("<i4", "(3,)", bytes_of<std::int32_t>({0, -1, 2}));
  EXPECT_TRUE(contains(negative, "y.npy: label 1 (byte 132) is -1; expected 0 to 99999"));
  EXPECT_TRUE(contains(error("|i1", "(1,)", {0xFF}), "is -1"));
  EXPECT_TRUE(contains(error("<i8", "(1,)", bytes_of<std::int64_t>({100000})), "is 100000"));
  EXPECT_EQ(error("<i8", "(1,)", bytes_of<std::int64_t>({99999})), "");
  EXPECT_TRUE(contains(
      error("<u8", "(1,)", bytes_of<std::uint64_t>({std::numeric_limits<std::uint64_t>::max()})),
      "is 9223372036854775807"));
}

TEST_F(LabelsOfAFile, OfAnotherTypeNameTheConversion) {
  EXPECT_TRUE(
      contains(error("<f8", "(1,)", Bytes(8)),
               "its labels are float64; expected integers, or float32 for numbers as targets; "
               "convert them: python3 -c \"import numpy"));
  for (const auto& [shape, bytes] : {std::pair("(1,)", 8), std::pair("(1, 2)", 16)}) {
    const std::string message = error("<f8", shape, Bytes(static_cast<std::size_t>(bytes)));
    EXPECT_TRUE(
        contains(message, "; if they are numbers to predict: python3 ", "a.astype('float32')"));
  }
  const std::string boolean = error("|b1", "(1,)", Bytes(1));
  EXPECT_TRUE(contains(boolean, "bool"));
  EXPECT_FALSE(contains(boolean, "float32')"));
  EXPECT_TRUE(contains(error("<i16", "(1,)", Bytes(16)), "int128"));
}

TEST_F(LabelsOfAFile, OfAnotherShapeAreRefused) {
  EXPECT_TRUE(contains(error("|u1", "(2, 10)", Bytes(20)), "if the rows are one-hot: python3"));
  EXPECT_TRUE(contains(error("|u1", "(2, 1, 1)", Bytes(2)), "expected [N]"));
}

TEST(ClassesWithoutSamples, AreNamedInAWarning) {
  testing::internal::CaptureStderr();
  warn_about_empty_classes(std::vector<std::int32_t>{0, 3, 1, 0}, 6, "y.npy");
  warn_about_empty_classes(std::vector<std::int32_t>{0, 1}, 2, "full.npy");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(text, "y.npy: 3 of 6 classes have no training sample, the first is 2"));
  EXPECT_FALSE(contains(text, "full.npy"));
}

}  // namespace
}  // namespace syncopate
