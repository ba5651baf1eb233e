#include "models/base/denormals.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

// Returns a denormal product that is computed at run time: volatile operands prevent constant
// folding.
float tiny_product() {
  volatile float a = 1e-30F;
  volatile float b = 1e-10F;
  return a * b;
}

TEST(FlushDenormals, MakesDenormalProductsZeroWhileItLives) {
  EXPECT_GT(tiny_product(), 0.0F);
  {
    const FlushDenormals flush;
    EXPECT_EQ(tiny_product(), 0.0F);
  }
  EXPECT_GT(tiny_product(), 0.0F);
}

}  // namespace
}  // namespace syncopate
