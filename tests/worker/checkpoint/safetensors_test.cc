// Tests of reading safetensors files that other programs wrote: element types, damage.
#include "worker/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/checkpoint/checkpoint_case.h"
#include "tests/worker/checkpoint/safetensors_file.h"

namespace syncopate {
namespace {

using Values = std::vector<float>;

class SafetensorsFile : public testing::Test {
 protected:
  Values read(const std::string& name) const {
    const SafetensorsReader file(path_);
    const TensorEntry& entry = *file.find(name);
    Values values(static_cast<std::size_t>(num_elements(entry.shape)));
    file.read(entry, values);
    return values;
  }
  // Returns the values of the only tensor of a file with elements of this type.
  Values converted(const std::string& dtype, const std::string& bytes, std::int64_t count) {
    write_file(path_, safetensors_bytes({{"x", dtype, {count}, bytes}}));
    return read("x");
  }
  // Opens the file and reads all tensors that it lists; returns the error, "" if there is none.
  std::string error_of(const std::string& bytes) {
    write_file(path_, bytes);
    return message_if_thrown<FileError>([&] {
      const SafetensorsReader file(path_);
      for (const TensorEntry& entry : file.tensors()) {
        Values values(static_cast<std::size_t>(num_elements(entry.shape)));
        file.read(entry, values);
      }
    });
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "small.safetensors";
};

// What torch.save_file makes of a convolution and its batch norm, in part in half precision.
std::vector<RawTensor> small_tensors() {
  return {{"conv1.weight", "F16", {2, 1, 1, 2}, bytes_of<std::uint16_t>({0x3C00, 0xC000, 1, 0})},
          {"bn1.weight", "F32", {2}, bytes_of<float>({1.5F, -2.0F})},
          {"bn1.running_var", "BF16", {2}, bytes_of<std::uint16_t>({0x3F80, 0x4040})},
          {"bn1.num_batches_tracked", "I64", {}, bytes_of<std::int64_t>({7})}};
}

TEST_F(SafetensorsFile, OfOtherTypesIsReadAsFloats) {
  write_file(path_, safetensors_bytes(small_tensors()));
  EXPECT_EQ(read("conv1.weight"), (Values{1.0F, -2.0F, 0x1p-24F, 0.0F}));
  EXPECT_EQ(read("bn1.weight"), (Values{1.5F, -2.0F}));
  EXPECT_EQ(read("bn1.running_var"), (Values{1.0F, 3.0F}));
  EXPECT_EQ(read("bn1.num_batches_tracked"), Values{7.0F});
}

TEST_F(SafetensorsFile, HasIntegersOfEveryWidth) {
  EXPECT_EQ(converted("I64", bytes_of<std::int64_t>({-3, 1 << 24}), 2), (Values{-3, 16777216}));
  EXPECT_EQ(converted("I32", bytes_of<std::int32_t>({-3, 70000}), 2), (Values{-3, 70000}));
  EXPECT_EQ(converted("I16", bytes_of<std::int16_t>({-3, 300}), 2), (Values{-3, 300}));
  EXPECT_EQ(converted("I8", bytes_of<std::int8_t>({-3, 127}), 2), (Values{-3, 127}));
  EXPECT_EQ(converted("U64", bytes_of<std::uint64_t>({3, 1ULL << 63}), 2), (Values{3, 0x1p63F}));
  EXPECT_EQ(converted("U32", bytes_of<std::uint32_t>({3, 1U << 31}), 2), (Values{3, 0x1p31F}));
  EXPECT_EQ(converted("U16", bytes_of<std::uint16_t>({3, 65535}), 2), (Values{3, 65535}));
  EXPECT_EQ(converted("U8", bytes_of<std::uint8_t>({3, 255}), 2), (Values{3, 255}));
  EXPECT_EQ(converted("BOOL", bytes_of<std::uint8_t>({0, 1}), 2), (Values{0, 1}));
}

TEST_F(SafetensorsFile, HasDoublesThatAreRoundedToNearest) {
  const double above_half = 1.0 + 0x1.8p-24;  // between 1 and the next f32, nearer to the latter
  EXPECT_EQ(converted("F64", bytes_of<double>({0.1, above_half}), 2), (Values{0.1F, 1 + 0x1p-23F}));
}

TEST_F(SafetensorsFile, OfManyElementsIsReadInParts) {
  std::vector<std::uint16_t> halves(1'200'001, 0x3C00);
  halves.back() = 0x4000;
  const Values values = converted("F16", bytes_of(halves), 1'200'001);
  EXPECT_EQ(values.front(), 1.0F);
  EXPECT_EQ(values[1'200'000 - 1], 1.0F);
  EXPECT_EQ(values.back(), 2.0F);
}

TEST(HalfToFloat, HasTheValueOfEachOfAllHalves) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    const int exponent = static_cast<int>((bits >> 10) & 0x1FU);
    const auto fraction = static_cast<double>(bits & 0x3FFU);
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    ASSERT_EQ(std::signbit(value), sign < 0.0) << bits;
    if (exponent == 31 && fraction != 0.0) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else if (exponent == 31) {
      ASSERT_TRUE(std::isinf(value)) << bits;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, exponent - 25);
      ASSERT_EQ(value, static_cast<float>(sign * magnitude)) << bits;
    }
  }
}

TEST_F(SafetensorsFile, OfANewerTypeIsRefusedByName) {
  const std::string error =
      error_of(safetensors_bytes({{"head", "F8_E4M3", {3}, std::string(3, '\1')}}));
  EXPECT_TRUE(contains(error, path_.string(), "tensor head has the type F8_E4M3"));
  EXPECT_TRUE(contains(error_of(safetensors_bytes({{"head", "F4", {4}, "ab"}})), "does not read"));
  EXPECT_TRUE(contains(error_of(safetensors_bytes({{"head", "F31", {1}, "abcd"}})),
                       "unknown dtype \"F31\""));
}

TEST_F(SafetensorsFile, MayHaveTensorsWithoutElements) {
  EXPECT_EQ(error_of(safetensors_bytes({{"empty", "F16", {0, 1LL << 60}, ""}})), "");
}

TEST_F(SafetensorsFile, CutShortAtAnyByteNamesFileAndSizes) {
  const std::string good = safetensors_bytes(small_tensors());
  ASSERT_EQ(error_of(good), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string error = error_of(good.substr(0, size));
    ASSERT_TRUE(contains(error, path_.string() + " is cut short")) << size;
    ASSERT_TRUE(contains(error, "found " + std::to_string(size)));
  }
}

TEST_F(SafetensorsFile, WithAnyFlippedBitIsReadOrNamesFileAndByte) {
  const std::string good = safetensors_bytes(small_tensors());
  std::uint64_t length = 0;
  std::memcpy(&length, good.data(), sizeof length);
  int errors = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const std::string error = error_of(bytes);
    // The format has no checksum: elements and names may become others.
    if (error.empty()) continue;
    ++errors;
    ASSERT_LT(bit / 8, sizeof length + length) << "an element is never an error";
    ASSERT_TRUE(contains(error, path_.string())) << bit;
    ASSERT_TRUE(error.find("byte") != std::string::npos) << bit << ": " << error;
  }
  EXPECT_GT(errors, 1000);
}

TEST_F(SafetensorsFile, WithAGapOrAnOverlapNamesTheTensorAndItsByte) {
  const auto two = [](int begin) {
    const std::string header =
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
        R"("data_offsets":[)" +
        std::to_string(begin) + "," + std::to_string(begin + 4) + "]}}";
    const std::uint64_t length = header.size();
    return bytes_of<std::uint64_t>({length}) + header +
           std::string(static_cast<std::size_t>(begin) + 4, '\1');
  };
  EXPECT_EQ(error_of(two(4)), "");
  EXPECT_TRUE(contains(error_of(two(5)), "byte 118: tensor b does not follow"));
  EXPECT_TRUE(contains(error_of(two(3)), "byte 116: tensor b does not follow"));
}

TEST_F(SafetensorsFile, WithAMillionLevelsInAShapeIsRefused) {
  const std::string deep(1 << 20, '[');
  const std::string header = R"({"a":{"dtype":"U8","data_offsets":[0,1],"shape":[)" + deep +
                             std::string(deep.size(), ']') + "]}}";
  EXPECT_TRUE(contains(error_of(bytes_of<std::uint64_t>({header.size()}) + header + "x"),
                       "an extent that is no count"));
}

}  // namespace
}  // namespace syncopate
