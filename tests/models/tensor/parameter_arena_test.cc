#include "models/tensor/parameter_arena.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate {
namespace {

// Parameters begin at multiples of 256 bytes, or 64 elements: a at 0, b at 128, c at 192, and the
// total is 256.
ArenaLayout small_layout() { return ArenaLayout({{"a", {10, 10}}, {"b", {3}}, {"c", {64}}}); }

TEST(ArenaLayout, StartsEveryParameterOnABoundary) {
  const ArenaLayout layout = small_layout();
  EXPECT_EQ(layout.offset(0), 0);
  EXPECT_EQ(layout.offset(1), 128);
  EXPECT_EQ(layout.offset(2), 192);
  EXPECT_EQ(layout.total(), 256);
  EXPECT_EQ(layout.size(0), 100);
}

TEST(ArenaLayout, IsEmptyWithoutParameters) {
  EXPECT_EQ(ArenaLayout().total(), 0);
  EXPECT_EQ(ArenaLayout(std::vector<ArenaEntry>{}).total(), 0);
}

TEST(PlanBuckets, PutsTheLastLayersFirst) {
  EXPECT_EQ(plan_buckets(small_layout(), 1),
            (std::vector<Bucket>{{192, 256}, {128, 192}, {0, 128}}));
}

TEST(PlanBuckets, FillsABucketBeforeItStartsTheNext) {
  // Parameter c occupies 256 bytes, b and c together 512.
  EXPECT_EQ(plan_buckets(small_layout(), 256),
            (std::vector<Bucket>{{192, 256}, {128, 192}, {0, 128}}));
  EXPECT_EQ(plan_buckets(small_layout(), 257), (std::vector<Bucket>{{128, 256}, {0, 128}}));
}

TEST(PlanBuckets, MakesOneBucketWhenAllParametersFit) {
  EXPECT_EQ(plan_buckets(small_layout(), 1 << 20), (std::vector<Bucket>{{0, 256}}));
}

TEST(PlanBuckets, CoversTheArenaOnceForEveryBucketSize) {
  const ArenaLayout layout = small_layout();
  for (std::int64_t bytes = 0; bytes <= 1200; bytes += 100) {
    std::int64_t end = layout.total();
    for (const Bucket& bucket : plan_buckets(layout, bytes)) {
      EXPECT_EQ(bucket.end, end);
      EXPECT_LT(bucket.begin, bucket.end);
      end = bucket.begin;
    }
    EXPECT_EQ(end, 0) << "buckets of " << bytes << " bytes";
  }
}

TEST(ParameterArena, ReturnsViewsThatDoNotOverlap) {
  const ParameterArena arena(small_layout(), plan_buckets(small_layout(), 1));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto number = static_cast<float>(i + 1);
    const Tensor value = arena.value(i);
    const Tensor gradient = arena.gradient(i);
    std::ranges::fill(value.f32(), number);
    std::ranges::fill(gradient.f32(), -number);
  }
  EXPECT_EQ(arena.value(0).shape(), (Shape{10, 10}));
  const auto values = arena.values().f32();
  EXPECT_EQ(std::ranges::count(values, 1.0F), 100);
  EXPECT_EQ(std::ranges::count(values, 2.0F), 3);
  EXPECT_EQ(std::ranges::count(values, 3.0F), 64);
  EXPECT_EQ(std::ranges::count(values, 0.0F), 256 - 167);  // the padding is zero
  EXPECT_EQ(std::ranges::count(arena.gradients().f32(), -3.0F), 64);
}

TEST(ParameterArena, CountsTheWritesOfABucket) {
  ParameterArena arena(small_layout(), plan_buckets(small_layout(), 1));
  EXPECT_EQ(arena.version(1), 1U);
  arena.bump_version(1);
  arena.bump_all_versions();
  EXPECT_EQ(arena.version(0), 2U);
  EXPECT_EQ(arena.version(1), 3U);
}

TEST(StateBlock, StoresItsEntriesSeparately) {
  const StateBlock state(ArenaLayout({{"mean", {4}}, {"variance", {4}}}));
  const Tensor variance = state.value(1);
  std::ranges::fill(variance.f32(), 1.0F);
  EXPECT_EQ(std::ranges::count(state.values.f32(), 1.0F), 4);
  EXPECT_EQ(state.value(0).f32()[3], 0.0F);
}

}  // namespace
}  // namespace syncopate
