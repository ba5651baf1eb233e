#include "models/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace syncopate {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Source of the expected numbers: file kat_vectors of Random123 1.09, philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Source of the expected hashes: the FNV reference vectors (isthe.com/chongo/tech/comp/fnv).
TEST(HashName, IsFnv1a) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8ULL);
}

TEST(RandomStream, DrawsTheSameNumberForAnIndexInAnyOrder) {
  const RandomStream random(7, 3);
  const std::uint32_t fifth = random.bits(5);
  for (std::uint64_t i = 100; i-- > 0;) static_cast<void>(random.bits(i));
  EXPECT_EQ(random.bits(5), fifth);
  EXPECT_EQ(RandomStream(7, 3).bits(5), fifth);
}

TEST(RandomStream, TakesFourConsecutiveNumbersFromOneBlock) {
  const RandomStream random(7, 3);
  const Words block = random.block(2);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(random.bits(8 + i), block.at(i));
}

TEST(RandomStream, DependsOnAllBitsOfSeedStreamAndIndex) {
  std::set<std::uint32_t> drawn;
  for (const std::uint64_t x : {0ULL, 1ULL, 1ULL << 32, 1ULL << 63}) {
    drawn.insert(RandomStream(x, 0).bits(0));
    drawn.insert(RandomStream(0, x).bits(0));
    drawn.insert(RandomStream(0, 0).bits(x));
  }
  EXPECT_EQ(drawn.size(), 10U);  // the three draws with x = 0 are identical
}

TEST(RandomStream, IsUniformInTheHalfOpenUnitInterval) {
  const RandomStream random(1, 2);
  constexpr int kDraws = 100'000;
  double sum = 0.0;
  double squares = 0.0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const float x = random.uniform(i);
    ASSERT_GE(x, 0.0F);
    ASSERT_LT(x, 1.0F);
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  // The tolerances for 1e5 uniform numbers are five standard deviations: 5 * sqrt(1/12 / 1e5) =
  // 0.0046 for the mean, and 5 * sqrt(4/45 / 1e5) = 0.0047 for the mean square.
  EXPECT_NEAR(sum / kDraws, 0.5, 0.0046);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3.0, 0.0048);
}

TEST(RandomStream, DrawsEveryNumberBelowABoundAboutEquallyOften) {
  const RandomStream random(1, 2);
  std::array<int, 10> counts{};
  for (std::uint64_t i = 0; i < 100'000; ++i) ++counts.at(random.below(i, 10));
  // The tolerance is five standard deviations of a count: 5 * sqrt(1e5 * 0.1 * 0.9) = 474.
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 474);
}

TEST(RandomPermutation, HoldsEveryNumberOnce) {
  std::vector<std::uint32_t> order = random_permutation(1000, 1, 0);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
}

TEST(RandomPermutation, IsAFunctionOfSeedAndStream) {
  EXPECT_EQ(random_permutation(100, 1, 2), random_permutation(100, 1, 2));
  EXPECT_NE(random_permutation(100, 1, 2), random_permutation(100, 1, 3));
  EXPECT_NE(random_permutation(100, 1, 2), random_permutation(100, 2, 2));
}

TEST(RandomPermutation, IsTrivialForZeroOrOneElements) {
  EXPECT_TRUE(random_permutation(0, 1, 0).empty());
  EXPECT_EQ(random_permutation(1, 1, 0), std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace syncopate
