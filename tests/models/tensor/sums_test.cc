#include "models/tensor/sums.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/base/isa.h"

namespace syncopate {
namespace {

std::vector<Isa> supported() {
  std::vector<Isa> all = {Isa::kV2};
  for (const Isa isa : {Isa::kV3, Isa::kV4}) {
    if (isa <= detect_isa()) all.push_back(isa);
  }
  return all;
}

// Returns pseudo-random bits as floats, which include denormals, infinities and NaN.
std::uint32_t bits_of(int rank, std::size_t i) {
  auto x = static_cast<std::uint32_t>(i) * 0x9E3779B9U + static_cast<std::uint32_t>(rank) * 77777U;
  x = (x ^ (x >> 15)) * 0x2C1B3C6DU;
  return x ^ (x >> 13);
}

float f32_of(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

// Returns what an addition must give: denormal operands and results become zero.
float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? 0.0F * value : value; }
float add(float a, float b) { return flushed(flushed(a) + flushed(b)); }

// Rounds a float to the nearest bf16, ties to even.
std::uint16_t nearest_bf16(float value) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  if (std::isinf(value) || f32_of(below) == value) return below;
  const auto above = static_cast<std::uint16_t>(below + 1);
  const double exact = value;
  const double limit = std::copysign(0x1p128, exact);  // replaces infinity in the distance
  const double to_above = std::abs((std::isinf(f32_of(above)) ? limit : f32_of(above)) - exact);
  const double to_below = std::abs(exact - f32_of(below));
  if (to_above == to_below) return below % 2 == 0 ? below : above;
  return to_above < to_below ? above : below;
}

constexpr std::size_t kLength = 3000;

class Sums : public testing::TestWithParam<int> {};

TEST_P(Sums, AddTheRanksInOrderOnEveryInstructionSet) {
  const int n = GetParam();
  for (const Isa isa : supported()) {
    for (int first = 0; first < n; ++first) {
      std::vector<std::vector<float>> ranks(static_cast<std::size_t>(n));
      std::vector<float*> pointers;
      for (int rank = 0; rank < n; ++rank) {
        auto& values = ranks[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < kLength; ++i) {
          values.push_back(std::bit_cast<float>(bits_of(rank, i)));
          // NaN operands are left out, because the payload of the sum of two NaN is not specified.
          if (std::isnan(values.back())) values.back() = 1.0F;
        }
        pointers.push_back(values.data());
      }
      const auto before = ranks;
      const std::size_t begin = 3;
      const std::size_t end = kLength - 2;
      sum_kernels(isa).sum_to_all_f32(pointers.data(), n, first, begin, end - begin);
      for (std::size_t i = 0; i < kLength; ++i) {
        float sum = before[static_cast<std::size_t>(first)][i];
        for (int k = 1; k < n; ++k)
          sum = add(sum, before[static_cast<std::size_t>((first + k) % n)][i]);
        for (int rank = 0; rank < n; ++rank) {
          const auto r = static_cast<std::size_t>(rank);
          const bool summed = n > 1 && i >= begin && i < end;
          const float expected = summed ? sum : before[r][i];
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(ranks[r][i])) << name(isa) << " element " << i;
          } else {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(ranks[r][i]),
                      std::bit_cast<std::uint32_t>(expected))
                << name(isa) << " element " << i << " of rank " << rank << ", first " << first;
          }
        }
      }
    }
  }
}

TEST_P(Sums, RoundBf16AfterEachAddition) {
  const int n = GetParam();
  for (const Isa isa : supported()) {
    std::vector<std::vector<std::uint16_t>> ranks(static_cast<std::size_t>(n));
    std::vector<std::uint16_t*> pointers;
    for (int rank = 0; rank < n; ++rank) {
      auto& values = ranks[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < kLength; ++i) {
        values.push_back(static_cast<std::uint16_t>(bits_of(rank, i)));
      }
      pointers.push_back(values.data());
    }
    const auto before = ranks;
    sum_kernels(isa).sum_to_all_bf16(pointers.data(), n, n - 1, 0, kLength);
    for (std::size_t i = 0; i < kLength; ++i) {
      float sum = f32_of(before.back()[i]);
      for (int k = 0; k + 1 < n; ++k) {
        sum = add(sum, f32_of(before[static_cast<std::size_t>(k)][i]));
        if (!std::isnan(sum)) sum = f32_of(nearest_bf16(sum));
      }
      for (const auto& rank : ranks) {
        if (std::isnan(sum)) {
          ASSERT_TRUE(std::isnan(f32_of(rank[i]))) << name(isa) << " element " << i;
        } else {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(f32_of(rank[i])),
                    std::bit_cast<std::uint32_t>(n == 1 ? f32_of(before[0][i]) : sum))
              << name(isa) << " element " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Sums, testing::Values(1, 2, 3, 5),
                         testing::PrintToStringParamName());

TEST(Sums, HaveTheSameBitsForASliceAndTheWholeArray) {
  for (const Isa isa : supported()) {
    std::vector<std::uint16_t> whole(kLength);
    std::vector<std::uint16_t> addend(kLength);
    for (std::size_t i = 0; i < kLength; ++i) {
      whole[i] = static_cast<std::uint16_t>(bits_of(0, i));
      addend[i] = static_cast<std::uint16_t>(bits_of(1, i));
    }
    std::vector<std::uint16_t> sliced = whole;
    sum_kernels(isa).add_bf16(whole.data(), addend.data(), kLength);
    for (std::size_t begin = 0; begin < kLength; begin += 7) {
      const std::size_t count = std::min<std::size_t>(7, kLength - begin);
      sum_kernels(isa).add_bf16(sliced.data() + begin, addend.data() + begin,
                                static_cast<std::int64_t>(count));
    }
    EXPECT_EQ(sliced, whole) << name(isa);
  }
}

TEST(Bf16, IsTheNearestAndComesBackAtAnyAddressOnEveryInstructionSet) {
  for (const Isa isa : supported()) {
    std::vector<float> values(kLength);
    for (std::size_t i = 0; i < kLength; ++i) values[i] = std::bit_cast<float>(bits_of(0, i));
    std::vector<char> words(2 * kLength + 1);
    std::vector<float> back(kLength);
    sum_kernels(isa).to_bf16(words.data() + 1, values.data(), kLength);
    sum_kernels(isa).from_bf16(back.data(), words.data() + 1, kLength);
    for (std::size_t i = 0; i < kLength; ++i) {
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(back[i])) << name(isa) << ", " << i;
      } else {
        EXPECT_EQ(back[i], f32_of(nearest_bf16(values[i]))) << name(isa) << ", " << i;
      }
    }
  }
}

TEST(Bf16, TakesUpTheErrorOfEarlierRoundingAndLeavesItsOwn) {
  for (const Isa isa : supported()) {
    const float infinity = std::numeric_limits<float>::infinity();
    // A bf16 between 1 and 2 has a neighbour at a distance of 2^-7.
    const std::vector<float> values{1.0F + 0x1p-9F, 1.0F + 0x1p-9F, infinity, std::nanf("")};
    std::vector<float> error{0.0F, 0x1p-8F, 0.0F, 0.0F};
    std::vector<std::uint16_t> words(4);
    sum_kernels(isa).to_bf16_with_error(words.data(), values.data(), error.data(), 4);
    EXPECT_EQ(f32_of(words[0]), 1.0F);
    EXPECT_EQ(f32_of(words[1]), 1.0F + 0x1p-7F);
    EXPECT_EQ(f32_of(words[2]), infinity);
    EXPECT_TRUE(std::isnan(f32_of(words[3])));
    EXPECT_EQ(error, (std::vector{0x1p-9F, -0x1p-9F, 0.0F, 0.0F})) << name(isa);
  }
}

TEST(Sums, KeepNanAndOverflowToInfinity) {
  for (const Isa isa : supported()) {
    std::uint16_t values[] = {0x7F81, 0xFFFF, 0x7F7F, 0x7F80};  // NaN, NaN, largest, infinity
    const std::uint16_t addends[] = {0x3F80, 0x3F80, 0x7F7F, 0xFF80};
    sum_kernels(isa).add_bf16(values, addends, 4);
    EXPECT_TRUE(std::isnan(f32_of(values[0])));
    EXPECT_TRUE(std::isnan(f32_of(values[1])));
    EXPECT_EQ(values[2], 0x7F80);
    EXPECT_TRUE(std::isnan(f32_of(values[3])));
  }
}

}  // namespace
}  // namespace syncopate
