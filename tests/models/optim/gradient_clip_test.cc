#include "models/optim/gradient_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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
