// Tests the kernels of loss scaling: what they record of the gradients, and their effect on the
// scale, on gradients and on an update.
#include <cmath>
#include <limits>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The numbers of gradients are smaller than a block, and larger than the threads of all blocks.
constexpr std::int64_t kCounts[] = {1, 255, 3'000'000};

LossScale found_in(const Values& gradients) {
  LossScale scale;
  DeviceArray<float> device(gradients);
  find_non_finite(device.data(), device.size(), &scale, kStream);
  return scale;
}

TEST(LossScale, DetectsAGradientThatIsNotFiniteAtAnyPosition) {
  for (const std::int64_t count : kCounts) {
    Values gradients(static_cast<std::size_t>(count), std::numeric_limits<float>::max());
    EXPECT_EQ(found_in(gradients).found_non_finite, 0) << count;
    for (const double value : {kInfinity, -kInfinity, static_cast<double>(NAN)}) {
      for (const std::int64_t place : {std::int64_t{0}, count / 2, count - 1}) {
        Values some = gradients;
        some[static_cast<std::size_t>(place)] = value;
        EXPECT_EQ(found_in(some).found_non_finite, 1) << value << " at " << place;
      }
    }
  }
}

TEST(LossScale, AcceptsAnEmptyGradient) { EXPECT_EQ(found_in({}).found_non_finite, 0); }

TEST(LossScale, HalvesAfterASkippedStepDownToOne) {
  LossScale scale{.scale = 4.0F, .found_non_finite = 1, .good_steps = 7};
  adjust_scale(&scale, 2000, kStream);
  EXPECT_EQ(scale.scale, 2.0F);
  EXPECT_EQ(scale.good_steps, 0);
  EXPECT_EQ(scale.skipped_steps, 1);
  EXPECT_EQ(scale.found_non_finite, 0) << "the next step starts with no non-finite gradient";
  for (int step = 0; step < 3; ++step) {
    scale.found_non_finite = 1;
    adjust_scale(&scale, 2000, kStream);
  }
  EXPECT_EQ(scale.scale, 1.0F);
  EXPECT_EQ(scale.skipped_steps, 4);
}

TEST(LossScale, DoublesAfterTheGrowthInterval) {
  LossScale scale{.scale = 8.0F};
  for (int step = 0; step < 2; ++step) adjust_scale(&scale, 3, kStream);
  scale.found_non_finite = 1;
  adjust_scale(&scale, 3, kStream);
  EXPECT_EQ(scale.scale, 4.0F);
  for (int step = 0; step < 2; ++step) adjust_scale(&scale, 3, kStream);
  EXPECT_EQ(scale.scale, 4.0F);
  adjust_scale(&scale, 3, kStream);
  EXPECT_EQ(scale.scale, 8.0F);
  EXPECT_EQ(scale.good_steps, 0);
}

TEST(LossScale, StaysANumberThatCanBeDividedBy) {
  LossScale scale;
  for (int step = 0; step < 300; ++step) adjust_scale(&scale, 1, kStream);
  EXPECT_TRUE(std::isnormal(scale.scale));
  EXPECT_TRUE(std::isnormal(1.0F / scale.scale));
}

TEST(LossScale, IsTakenOutOfGradientsAgain) {
  for (const std::int64_t count : kCounts) {
    const Values gradients = draw<float>(count, 3);
    Values scaled = gradients;
    for (double& value : scaled) value *= 1024.0;
    DeviceArray<float> device(scaled);
    LossScale scale{.scale = 1024.0F};
    unscale(&scale, device.data(), count, kStream);
    EXPECT_EQ(device.values(), gradients) << count;
  }
}

TEST(LossScale, LeavesZerosOfAStepThatIsSkipped) {
  DeviceArray<float> device(Values{1.0, kInfinity, NAN});
  LossScale scale{.scale = 1024.0F, .found_non_finite = 1};
  unscale(&scale, device.data(), device.size(), kStream);
  EXPECT_EQ(device.values(), (Values{0.0, 0.0, 0.0}));
}

// Applies one update by every optimizer to the arrays below.
struct UpdateRun {
  explicit UpdateRun(UpdateRule rule, double gradient_scale, const LossScale* scale) {
    constexpr std::int64_t kCount = 200;
    Values gradients = draw<float>(kCount, 2);
    for (double& value : gradients) value *= gradient_scale;
    DeviceArray<float> values(draw<float>(kCount, 1));
    DeviceArray<float> device_gradients(gradients);
    DeviceArray<float> slot0(draw<float>(kCount, 3, 1.0));
    DeviceArray<float> slot1(draw<float>(kCount, 4, 1.0));
    DeviceArray<__half> weights(draw<__half>(kCount, 5));
    DeviceArray<std::uint8_t> decays(Values(4, 1.0));
    const bool has_slots = rule != UpdateRule::kSgd;
    UpdateConstants constants{.rule = rule};
    constants.sgd = {.learning_rate = 0.1F, .weight_decay = 0.01F, .momentum = 0.9F};
    constants.adam = {.weight_decay = 0.01F,
                      .value_scale = 0.999F,
                      .beta1 = 0.9F,
                      .beta2 = 0.999F,
                      .one_minus_beta1 = 0.1F,
                      .one_minus_beta2 = 0.001F,
                      .step_size = 0.01F,
                      .denominator_scale = 1.5F,
                      .epsilon = 1e-8F};
    update(constants, constants,
           {.values = values.data(),
            .gradients = device_gradients.data(),
            .slots = {has_slots ? slot0.data() : nullptr, has_slots ? slot1.data() : nullptr},
            .decays = decays.data(),
            .scale = scale},
           weights.data(), kCount, kStream);
    outputs = {values.values(), slot0.values(), slot1.values(), weights.values()};
    before = {draw<float>(kCount, 1), draw<float>(kCount, 3, 1.0), draw<float>(kCount, 4, 1.0),
              draw<__half>(kCount, 5)};
  }
  Outputs outputs;  // values, slots and weights
  Outputs before;
};

constexpr UpdateRule kRules[] = {UpdateRule::kSgd, UpdateRule::kMomentum, UpdateRule::kNesterov,
                                 UpdateRule::kAdam};

TEST(LossScale, IsTakenOutByAnUpdateWithTheSameBits) {
  const LossScale scale{.scale = 4096.0F};
  for (const UpdateRule rule : kRules) {
    const UpdateRun plain(rule, 1.0, nullptr);
    const UpdateRun scaled(rule, 4096.0, &scale);
    EXPECT_NE(plain.outputs, plain.before);
    expect_same_bits(plain.outputs, scaled.outputs);
  }
}

TEST(LossScale, LeavesValuesSlotsAndWeightsAsTheyAreWhereAStepIsSkipped) {
  const LossScale scale{.scale = 4096.0F, .found_non_finite = 1};
  for (const UpdateRule rule : kRules) {
    const UpdateRun skipped(rule, 4096.0, &scale);
    expect_same_bits(skipped.before, skipped.outputs);
  }
}

}  // namespace
}  // namespace syncopate::cuda
