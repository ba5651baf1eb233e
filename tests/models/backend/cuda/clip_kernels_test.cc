// Tests the kernels that clip gradients against the CPU's clipping.
#include <cmath>
#include <limits>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/optim/gradient_clip.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

std::vector<float> clipped(const Values& gradients, double max_norm, const LossScale* scale) {
  DeviceArray<float> device(gradients);
  std::vector<double> squares(kSquaresBlocks);
  clip_gradients(device.data(), device.size(), max_norm, scale, squares.data(), nullptr);
  const Values values = device.values();
  return {values.begin(), values.end()};
}

// The counts are one element, fewer than a block has threads, and more than all blocks have.
TEST(ClipKernels, ScaleAsTheCpuDoes) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{200}, std::int64_t{200'000}}) {
    const Values gradients = draw<float>(count, 5);
    const std::vector<float> floats(gradients.begin(), gradients.end());
    const double norm = gradient_norm(floats);
    for (const double max_norm : {norm / 3.0, 3.0 * norm}) {
      std::vector<float> expected = floats;
      syncopate::clip_gradients(expected, max_norm);
      const std::vector<float> found = clipped(gradients, max_norm, nullptr);
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-6 * std::abs(expected[i])) << count << " " << i;
      }
    }
  }
}

TEST(ClipKernels, LeaveTheBitsOfGradientsThatAreSmallEnough) {
  const Values gradients = draw<float>(1000, 6);
  const std::vector<float> floats(gradients.begin(), gradients.end());
  EXPECT_EQ(clipped(gradients, 1.01 * gradient_norm(floats), nullptr), floats);
}

TEST(ClipKernels, DivideTheNormByTheLossScale) {
  const Values gradients = draw<float>(1000, 7);
  const std::vector<float> floats(gradients.begin(), gradients.end());
  const double norm = gradient_norm(floats);
  const LossScale scale{.scale = 8.0F};
  EXPECT_EQ(clipped(gradients, norm / 7.0, &scale), floats);
  EXPECT_NEAR(gradient_norm(clipped(gradients, norm / 16.0, &scale)), norm / 2.0, 1e-4 * norm);
}

TEST(ClipKernels, KeepANonFiniteGradientVisible) {
  for (const double value : {std::numeric_limits<double>::infinity(), static_cast<double>(NAN)}) {
    Values gradients = draw<float>(1000, 8);
    gradients[500] = value;
    EXPECT_FALSE(std::isfinite(clipped(gradients, 1.0, nullptr)[500])) << value;
  }
}

}  // namespace
}  // namespace syncopate::cuda
