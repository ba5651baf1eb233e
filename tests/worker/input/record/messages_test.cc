// Example and serialized tensors: golden bytes, forms that TensorFlow's readers accept, damage.
#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/record/record_bytes.h"
#include "worker/input/record/record_samples.h"
#include "worker/input/record/stored_tensor.h"

namespace syncopate {
namespace {

// {image: bytes FFD8FF, label: 3}, by hand.
const char* const kExample =
    "0a22 0a10 0a05 696d616765 1207 0a05 0a03 ffd8ff 0a0e 0a05 6c6162656c 1205 1a03 0a01 03";

std::optional<Example> parse(const Bytes& bytes) {
  return Example::parse(std::as_bytes(std::span(bytes)));
}
std::int64_t label_in(std::string_view hex) {
  const auto example = parse(from_hex(hex));
  return example->find("label")->integers.front();
}

TEST(ExampleMessage, HasTheFeaturesOfTheGoldenBytes) {
  const auto example = parse(from_hex(kExample));
  ASSERT_TRUE(example);
  EXPECT_EQ(example->describe(), "image (bytes), label (int64)");
  EXPECT_EQ(as_u8(example->find("image")->bytes), (Bytes{0xFF, 0xD8, 0xFF}));
  EXPECT_EQ(example->find("label")->integers.front(), 3);
  EXPECT_FALSE(example->find("other"));
}

TEST(ExampleMessage, IsWrittenAsItIsRead) {
  const auto example = parse(labelled_record({1, 2}, -5, "a", "b"));
  ASSERT_TRUE(example);
  EXPECT_EQ(as_u8(example->find("a")->bytes), (Bytes{1, 2}));
  EXPECT_EQ(example->find("b")->integers.front(), -5);
}

TEST(ExampleMessage, TakesTheFormsThatReadersMustTake) {
  EXPECT_EQ(label_in("0a0f 0a0d 0a05 6c6162656c 1204 1a02 08 03"), 3)
      << "a list that is not packed";
  EXPECT_EQ(
      label_in("0a1e 0a0d 0a05 6c6162656c 1204 1a02 08 03 0a0d 0a05 6c6162656c 1204 1a02 08 04"), 4)
      << "the last of equal names";
  EXPECT_EQ(label_in("0a0f 0a0d 0a05 6c6162656c 1204 1a02 08 03 f206 02 6161"), 3)
      << "an unknown field";
  const auto empty = parse(from_hex("0a0b 0a09 0a05 6c6162656c 1200"));
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->find("label")->kind, FeatureKind::kEmpty);
}

TEST(ExampleMessage, NamesFeaturesThatAreAbsentOrOfAnotherKind) {
  const auto example = parse(from_hex(kExample));
  EXPECT_EQ(message_of<UsageError>([&] {
              require_feature(*example, {"--image-feature", "img"}, FeatureKind::kBytes, "F");
            }),
            "--image-feature img: there is no such feature in F, which has image (bytes), label "
            "(int64)");
  EXPECT_EQ(message_of<UsageError>([&] {
              require_feature(*example, {"--label-feature", "image"}, FeatureKind::kIntegers, "F");
            }),
            "--label-feature image: expected a feature of int64; F has image (bytes), label "
            "(int64)");
}

// A damaged message that protobuf still accepts has other values; the checksum of the record finds
// those. Here no damage may do more than that.
TEST(ExampleMessage, IsReadOrRefusedWhateverItsDamage) {
  int num_refused = 0;
  for_each_damage(from_hex(kExample), [&](const Bytes& damaged) {
    try {
      const Example example =
          parse_example(std::as_bytes(std::span(damaged)), "F: record at byte 0");
      const Feature image =
          require_feature(example, {"--image-feature", "image"}, FeatureKind::kBytes, "F");
      EXPECT_LE(image.bytes.size(), damaged.size());
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find('F'), std::string::npos) << error.what();
      ++num_refused;
    }
  });
  EXPECT_GT(num_refused, 100);
}

// int32 [1, 2, 1] = 1, 0 as tf.io.serialize_tensor has it.
const char* const kTensor = "0803 120c 1202 0801 1202 0802 1202 0801 2208 01000000 00000000";

StoredTensor tensor(std::string_view hex) {
  const Bytes bytes = from_hex(hex);
  return parse_tensor(std::as_bytes(std::span(bytes)), "F");
}
std::string tensor_error(std::string_view hex) {
  return message_of<FileError>([&] { tensor(hex); });
}

TEST(TensorMessage, HasTheElementsOfTheGoldenBytes) {
  const StoredTensor golden = tensor(kTensor);
  EXPECT_EQ(golden.type, StoredType::kI32);
  EXPECT_EQ(golden.shape, (Shape{1, 2, 1}));
  EXPECT_EQ(as_u8(golden.bytes()), (Bytes{1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(as_u8(serialize_tensor(golden)), from_hex(kTensor));
  const StoredTensor u16 = tensor("0811 120c 1202 0801 1202 0802 1202 0801 2204 0100 2c01");
  EXPECT_EQ(u16.type, StoredType::kU16);
  EXPECT_EQ(as_u8(u16.bytes()), (Bytes{1, 0, 0x2C, 1}));
}

TEST(TensorMessage, TakesListsOfValuesWhoseLastRepeats) {
  EXPECT_EQ(as_u8(tensor("0811 1204 1202 0803 3a02 0507").bytes()), (Bytes{5, 0, 7, 0, 7, 0}));
  EXPECT_EQ(as_u8(tensor("0801 1204 1202 0802 2d 0000803f").bytes()),
            (Bytes{0, 0, 0x80, 0x3F, 0, 0, 0x80, 0x3F}))
      << "a list that is not packed";
  EXPECT_EQ(as_u8(tensor("0804 1204 1202 0802").bytes()), (Bytes{0, 0})) << "no values are zeros";
}

TEST(TensorMessage, IsRefusedWithAReason) {
  EXPECT_EQ(tensor_error("0807 1200"),
            "F: a tensor of TensorFlow's type 7; expected float32, an integer or bool");
  EXPECT_EQ(tensor_error("0803 1202 1801"), "F: a tensor of an unknown shape");
  EXPECT_EQ(tensor_error("0803 1204 1202 0802 2204 01000000"),
            "F: 0 values and 4 bytes for a tensor of int32 [2]");
  EXPECT_EQ(tensor_error("0803 1204 1202 0801 3a02 0506"),
            "F: 2 values and 0 bytes for a tensor of int32 [1]");
  EXPECT_EQ(tensor_error("ff"),
            "F: 1 bytes that are no serialized tensor; expected what tf.io.serialize_tensor "
            "writes");
}

TEST(TensorMessage, AsksForNoMemoryThatAFalseShapeNames) {
  // [2^40], [2^31, 2^31, 2^31] and [-1], each with one value.
  EXPECT_EQ(tensor_error("0803 1209 1207 08 808080808020 3a01 05"),
            "F: a tensor of shape [1099511627776]; expected at most 256 MB");
  const std::string extent = "1206 08 8080808008 ";
  EXPECT_TRUE(
      contains(tensor_error("0803 1218 " + extent + extent + extent + "3a01 05"), "256 MB"));
  EXPECT_TRUE(contains(tensor_error("0803 120d 120b 08 ffffffffffffffffff01 3a01 05"), "[-1]"));
}

TEST(TensorMessage, IsReadOrRefusedWhateverItsDamage) {
  int num_refused = 0;
  for_each_damage(from_hex(kTensor), [&](const Bytes& damaged) {
    try {
      const StoredTensor found = parse_tensor(std::as_bytes(std::span(damaged)), "F");
      EXPECT_EQ(found.elements.size(),
                static_cast<std::size_t>(num_elements(found.shape)) * size_bytes(found.type));
    } catch (const FileError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("F: ")) << error.what();
      ++num_refused;
    }
  });
  EXPECT_GT(num_refused, 100);
}

}  // namespace
}  // namespace syncopate
