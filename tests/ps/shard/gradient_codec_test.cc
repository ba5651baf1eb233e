// Tests encoding and decoding of gradients, error feedback, and the check of received bytes.
#include "ps/shard/gradient_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Floats decode(const EncodedGradient& gradient) {
  Floats scratch(static_cast<std::size_t>(gradient.num_elements));
  const std::span<const float> values = decode_chunk(gradient, 0, scratch);
  return {values.begin(), values.end()};
}

Floats random_gradient(std::int64_t elements, std::uint64_t stream) {
  const RandomStream random(1, stream);
  Floats gradient(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = random.uniform(i) * 2.0F - 1.0F;
  return gradient;
}

// Returns the bytes of u32 indices followed by f32 values.
std::vector<std::byte> largest(const std::vector<std::uint32_t>& indices, const Floats& values) {
  std::vector<std::byte> bytes(4 * (indices.size() + values.size()));
  std::byte* const after = std::ranges::copy(std::as_bytes(std::span(indices)), bytes.data()).out;
  std::ranges::copy(std::as_bytes(std::span(values)), after);
  return bytes;
}

TEST(ParseCompression, AcceptsThreeForms) {
  EXPECT_EQ(parse_compression("none", "--compress").codec, Codec::kF32);
  EXPECT_EQ(parse_compression("bf16", "--compress").codec, Codec::kBf16);
  const CompressionOptions options = parse_compression("topk:0.25", "--compress");
  EXPECT_EQ(options.codec, Codec::kTopK);
  EXPECT_EQ(options.fraction, 0.25);
  EXPECT_EQ(parse_compression("topk:1", "--compress").fraction, 1.0);
}

TEST(ParseCompression, ReadsTheTextOfEachCompression) {
  for (const std::string text : {"none", "bf16", "topk:0.25"}) {
    EXPECT_EQ(to_text(parse_compression(text, "--compress")), text);
  }
}

TEST(ParseCompression, NamesTheFlagAndTheExpectedFormsForOtherText) {
  for (const std::string text : {"", "f32", "topk", "topk:", "topk:0", "topk:1.5", "topk:-1",
                                 "topk:nan", "topk:0.1x", "bf16 ", "bf16:", "none:1"}) {
    const std::string error =
        message_of<UsageError>([&] { (void)parse_compression(text, "--compress"); });
    EXPECT_TRUE(error.starts_with("--compress " + text)) << error;
    EXPECT_TRUE(contains(error, "topk:0.01"));
  }
}

TEST(EncodedGradient, OfF32IsTheGradientItself) {
  const Floats gradient = random_gradient(10, 1);
  GradientEncoder encoder({}, 10);
  const EncodedGradient encoded = encoder.encode(gradient);
  EXPECT_EQ(encoded.bytes.data(), std::as_bytes(std::span(gradient)).data());
  EXPECT_TRUE(is_well_formed(encoded));
  Floats scratch(3);
  const std::span<const float> chunk = decode_chunk(encoded, 4, scratch);
  EXPECT_EQ(chunk.data(), gradient.data() + 4);
  EXPECT_EQ(chunk.size(), 3U);
}

TEST(EncodedGradient, OfF32IsCopiedIfItIsNotAligned) {
  const Floats gradient = random_gradient(10, 1);
  std::vector<std::byte> bytes(41);
  std::memcpy(bytes.data() + 1, gradient.data(), 40);
  Floats scratch(3);
  const std::span<const float> chunk =
      decode_chunk({Codec::kF32, 10, std::span(bytes).subspan(1)}, 4, scratch);
  EXPECT_EQ(chunk.data(), scratch.data());
  EXPECT_TRUE(std::ranges::equal(chunk, std::span(gradient).subspan(4, 3)));
}

TEST(EncodedGradient, OfBf16IsRoundedToNearestEven) {
  // A bf16 has 8 bits of mantissa, so bf16 numbers between 1 and 2 are 2^-7 apart.
  const float step = std::exp2(-7.0F);
  const Floats gradient = {1.0F,
                           1.0F + step / 4,         // is rounded down
                           1.0F + step * 3 / 4,     // is rounded up
                           1.0F + step / 2,         // a tie, is rounded to the even 1
                           1.0F + step + step / 2,  // a tie, is rounded to the even 1 + 2 steps
                           -1.0F - step * 3 / 4,
                           0.0F,
                           kInfinity};
  GradientEncoder encoder({.codec = Codec::kBf16}, 8);
  const EncodedGradient encoded = encoder.encode(gradient);
  EXPECT_EQ(encoded.bytes.size(), 16U);
  EXPECT_TRUE(is_well_formed(encoded));
  EXPECT_EQ(decode(encoded), (Floats{1.0F, 1.0F, 1.0F + step, 1.0F, 1.0F + 2 * step, -1.0F - step,
                                     0.0F, kInfinity}));
}

TEST(EncodedGradient, OfBf16KeepsInfinityAndNaN) {
  const Floats gradient = {std::bit_cast<float>(0x7f800001U), std::bit_cast<float>(0xffffffffU)};
  GradientEncoder encoder({.codec = Codec::kBf16}, 2);
  const Floats decoded = decode(encoder.encode(gradient));
  EXPECT_TRUE(std::isnan(decoded[0]));
  EXPECT_TRUE(std::isnan(decoded[1]));
  // Infinity and NaN in one step do not affect the encoding of the next step.
  EXPECT_EQ(decode(encoder.encode(Floats{1.0F, 2.0F})), (Floats{1.0F, 2.0F}));
}

TEST(EncodedGradient, OfTopKHasTheLargestElementsAndZeros) {
  GradientEncoder encoder({.codec = Codec::kTopK, .fraction = 0.5}, 6);
  const EncodedGradient encoded = encoder.encode(Floats{0.1F, -3.0F, 0.2F, 2.0F, -0.3F, 4.0F});
  EXPECT_EQ(encoded.bytes.size(), 3U * 8U);
  EXPECT_TRUE(is_well_formed(encoded));
  EXPECT_EQ(decode(encoded), (Floats{0.0F, -3.0F, 0.0F, 2.0F, 0.0F, 4.0F}));
}

TEST(EncodedGradient, OfTopKTakesTheFirstOfEqualElements) {
  GradientEncoder encoder({.codec = Codec::kTopK, .fraction = 0.5}, 6);
  EXPECT_EQ(decode(encoder.encode(Floats{1.0F, -1.0F, 5.0F, 1.0F, 1.0F, 0.0F})),
            (Floats{1.0F, -1.0F, 5.0F, 0.0F, 0.0F, 0.0F}));
}

TEST(EncodedGradient, OfTopKHasAtLeastOneElementAndAtMostAll) {
  GradientEncoder few({.codec = Codec::kTopK, .fraction = 0.01}, 3);
  EXPECT_EQ(decode(few.encode(Floats{1.0F, 2.0F, 1.0F})), (Floats{0.0F, 2.0F, 0.0F}));
  GradientEncoder all({.codec = Codec::kTopK, .fraction = 1.0}, 3);
  EXPECT_EQ(decode(all.encode(Floats{1.0F, 2.0F, 0.0F})), (Floats{1.0F, 2.0F, 0.0F}));
}

TEST(EncodedGradient, OfTopKDropsAnUnsentNaNFromTheError) {
  GradientEncoder encoder({.codec = Codec::kTopK, .fraction = 0.5}, 2);
  EXPECT_EQ(decode(encoder.encode(Floats{kInfinity, kInfinity})), (Floats{kInfinity, 0.0F}));
  EXPECT_EQ(decode(encoder.encode(Floats{1.0F, 2.0F})), (Floats{0.0F, 2.0F}));
}

TEST(EncodedGradient, OfTopKAgreesWithASort) {
  constexpr std::int64_t kElements = 20000;
  const Floats gradient = random_gradient(kElements, 7);
  GradientEncoder encoder({.codec = Codec::kTopK, .fraction = 0.03}, kElements);
  const Floats decoded = decode(encoder.encode(gradient));
  Floats magnitudes(gradient.size());
  std::ranges::transform(gradient, magnitudes.begin(), [](float v) { return std::abs(v); });
  std::ranges::sort(magnitudes, std::greater<>());
  EXPECT_EQ(std::ranges::count_if(decoded, [](float v) { return v != 0.0F; }), 600);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_EQ(decoded[i], std::abs(gradient[i]) >= magnitudes[599] ? gradient[i] : 0.0F) << i;
  }
}

TEST(GradientEncoder, AddsTheErrorToTheNextStep) {
  GradientEncoder encoder({.codec = Codec::kTopK, .fraction = 0.5}, 2);
  EXPECT_EQ(decode(encoder.encode(Floats{4.0F, 3.0F})), (Floats{4.0F, 0.0F}));
  EXPECT_EQ(decode(encoder.encode(Floats{4.0F, 2.0F})), (Floats{0.0F, 5.0F}));
  EXPECT_EQ(decode(encoder.encode(Floats{0.0F, 0.0F})), (Floats{4.0F, 0.0F}));
  EXPECT_EQ(decode(encoder.encode(Floats{0.0F, 0.0F})), (Floats{0.0F, 0.0F}));
}

TEST(GradientEncoder, LosesNothingOverManySteps) {
  constexpr std::int64_t kElements = 500;
  constexpr int kSteps = 50;
  for (const CompressionOptions options :
       {CompressionOptions{.codec = Codec::kBf16},
        CompressionOptions{.codec = Codec::kTopK, .fraction = 0.1}}) {
    GradientEncoder encoder(options, kElements);
    std::vector<double> wanted(kElements);
    std::vector<double> arrived(kElements);
    // The last ten gradients are zero, so that the encoder sends the elements that it has held
    // back: in each of ten steps a tenth of them.
    for (int step = 0; step < kSteps + 10; ++step) {
      const Floats gradient = step < kSteps ? random_gradient(kElements, 100 + step) : Floats(500);
      const Floats decoded = decode(encoder.encode(gradient));
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        wanted[i] += gradient[i];
        arrived[i] += decoded[i];
      }
    }
    // The tolerance of 1e-4 covers 50 f32 additions of numbers up to 8.
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(arrived[i], wanted[i], 1e-4) << i;
  }
}

TEST(GradientEncoder, RefusesGradientsOfAnotherLength) {
  GradientEncoder encoder({}, 3);
  EXPECT_THROW((void)encoder.encode(Floats(2)), ShapeError);
}

TEST(DecodeChunk, GivesEqualValuesForChunksOfAnySize) {
  constexpr std::int64_t kElements = 1000;
  const Floats gradient = random_gradient(kElements, 3);
  for (const Codec codec : {Codec::kF32, Codec::kBf16, Codec::kTopK}) {
    GradientEncoder encoder({.codec = codec, .fraction = 0.1}, kElements);
    const EncodedGradient encoded = encoder.encode(gradient);
    const Floats whole = decode(encoded);
    for (const std::int64_t size : {1, 7, 64, 999}) {
      for (std::int64_t begin = 0; begin < kElements; begin += size) {
        Floats scratch(static_cast<std::size_t>(std::min(size, kElements - begin)), 9.0F);
        const std::span<const float> chunk = decode_chunk(encoded, begin, scratch);
        ASSERT_TRUE(std::ranges::equal(
            chunk, std::span(whole).subspan(static_cast<std::size_t>(begin), scratch.size())))
            << begin << ", " << size;
      }
    }
  }
}

TEST(DecodeChunk, NeedsNoAlignment) {
  const Floats gradient = random_gradient(64, 3);
  for (const Codec codec : {Codec::kF32, Codec::kBf16, Codec::kTopK}) {
    GradientEncoder encoder({.codec = codec, .fraction = 0.5}, 64);
    const EncodedGradient encoded = encoder.encode(gradient);
    std::vector<std::byte> bytes(encoded.bytes.size() + 1);
    std::ranges::copy(encoded.bytes, bytes.begin() + 1);
    const EncodedGradient moved{codec, 64, std::span(bytes).subspan(1)};
    EXPECT_TRUE(is_well_formed(moved));
    EXPECT_EQ(decode(moved), decode(encoded));
  }
}

TEST(IsWellFormed, RejectsAnotherLength) {
  const std::vector<std::byte> bytes(24);
  for (const std::int64_t elements : {-1, 0, 5, 7}) {
    EXPECT_FALSE(is_well_formed({Codec::kF32, elements, bytes})) << elements;
    EXPECT_FALSE(is_well_formed({Codec::kBf16, elements, bytes})) << elements;
  }
  EXPECT_FALSE(is_well_formed({Codec::kF32, 6, std::span(bytes).first(23)}));
  EXPECT_FALSE(is_well_formed({Codec::kBf16, 12, std::span(bytes).first(23)}));
}

TEST(IsWellFormed, RequiresAscendingIndicesBelowTheLength) {
  const auto with = [](const std::vector<std::uint32_t>& indices, std::int64_t elements) {
    const std::vector<std::byte> bytes = largest(indices, Floats(indices.size()));
    return is_well_formed({Codec::kTopK, elements, bytes});
  };
  EXPECT_TRUE(with({0, 3, 9}, 10));
  EXPECT_FALSE(with({0, 3, 10}, 10));
  EXPECT_FALSE(with({0, 0xffffffffU}, 10));
  EXPECT_FALSE(with({3, 3}, 10));
  EXPECT_FALSE(with({4, 3}, 10));
  EXPECT_FALSE(with({0, 1, 2}, 2));
  EXPECT_FALSE(with({}, 10));
  const std::vector<std::byte> bytes = largest({1}, {1.0F});
  EXPECT_FALSE(is_well_formed({Codec::kTopK, 10, std::span(bytes).first(7)}));
}

TEST(IsWellFormed, RejectsAnUnknownCodec) {
  const std::vector<std::byte> bytes(24);
  EXPECT_FALSE(is_well_formed({static_cast<Codec>(3), 6, bytes}));
}

}  // namespace
}  // namespace syncopate::ps
