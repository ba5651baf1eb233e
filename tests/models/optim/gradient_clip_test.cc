#include "models/optim/gradient_clip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace syncopate {
namespace {

TEST(GradientNorm, IsTheRootOfTheSumOfSquares) {
  EXPECT_DOUBLE_EQ(gradient_norm(std::vector<float>{3.0F, 0.0F, -4.0F}), 5.0);
  EXPECT_DOUBLE_EQ(gradient_norm(std::vector<float>(100, 1.0F)), 10.0);
  EXPECT_EQ(gradient_norm({}), 0.0);
  // The squares of f32 numbers do not overflow.
  EXPECT_NEAR(gradient_norm(std::vector<float>(4, 1e30F)), 2e30, 1e24);
}

TEST(GradientNorm, HasTheSameBitsInParts) {
  std::vector<float> gradients(160);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = 1.0F / static_cast<float>(i + 3);
  }
  const std::span<const float> all(gradients);
  NormSums sums;
  sums.add(all.first(64));
  NormSums passed_on;
  std::ranges::copy(sums.all(), passed_on.all().begin());
  passed_on.add(all.subspan(64));
  EXPECT_EQ(passed_on.norm(), gradient_norm(all));
}

TEST(GradientClip, ScalesALargerGradientToTheNorm) {
  std::vector<float> gradients{3.0F, 0.0F, -4.0F};
  clip_gradients(gradients, 1.0);
  EXPECT_NEAR(gradients[0], 0.6, 1e-6);
  EXPECT_NEAR(gradients[2], -0.8, 1e-6);
}

TEST(GradientClip, LeavesASmallerGradientAsItIs) {
  const std::vector<float> given{3.0F, 1e-40F, -4.0F};
  std::vector<float> gradients = given;
  clip_gradients(gradients, 5.1);
  EXPECT_EQ(gradients, given);
}

// A divergence must not be hidden.
TEST(GradientClip, DoesNotHideNumbersThatAreNotFinite) {
  std::vector<float> gradients{1.0F, std::numeric_limits<float>::infinity()};
  clip_gradients(gradients, 1.0);
  EXPECT_FALSE(std::isfinite(gradients[1]));
  gradients = {1.0F, std::numeric_limits<float>::quiet_NaN()};
  clip_gradients(gradients, 1.0);
  EXPECT_TRUE(std::isnan(gradients[0]));
}

}  // namespace
}  // namespace syncopate
