// Tests the kernels of the losses against the double-precision loops of tests/reference.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

// LossRun has the arguments as the kernel gets them; sums and scratch are in memory of their own.
template <typename T>
struct LossRun {
  LossRun(const Values& logits, const std::vector<std::int32_t>& labels, int classes,
          float smoothing, double divisor, float scale, bool wants_gradient, int pixels = 0) {
    const auto n = static_cast<std::int64_t>(labels.size());
    DeviceArray<T> x(logits);
    DeviceArray<std::int32_t> y(Values(labels.begin(), labels.end()));
    DeviceArray<T> gradient(static_cast<std::int64_t>(logits.size()));
    const LossShape shape{.n = n / std::max(pixels, 1),
                          .pixels = pixels,
                          .classes = classes,
                          .smoothing = smoothing,
                          .divisor = divisor};
    DeviceArray<unsigned char> scratch(softmax_cross_entropy_scratch(shape));
    DeviceArray<float> factor(Values{static_cast<double>(scale)});
    softmax_cross_entropy(shape, x.data(), y.data(), factor.data(),
                          wants_gradient ? gradient.data() : nullptr, &sums, scratch.data(),
                          kStream);
    dlogits = gradient.values();
  }
  LossSums sums{-1.0, -1.0};
  Values dlogits;
};

template <typename T>
class LossKernel : public testing::Test {};
TYPED_TEST_SUITE(LossKernel, ElementTypes);

TYPED_TEST(LossKernel, GivesLossCorrectCountAndGradient) {
  using T = TypeParam;
  constexpr double kDivisor = 7.0;
  constexpr float kScale = 128.0F;
  struct Case {
    std::int64_t n;
    int classes;
    float smoothing = 0.0F;
  };
  // The numbers of classes are one; fewer than a group of threads, as many, and more; more than a
  // block. One case has many samples.
  for (const Case& shape : {Case{1, 1}, Case{3, 10}, Case{40, 32}, Case{9, 100}, Case{5, 1000},
                            Case{700, 10}, Case{40, 10, 0.1F}, Case{5, 1000, 0.25F}}) {
    const std::int64_t n = shape.n;
    const int classes = shape.classes;
    SCOPED_TRACE(std::to_string(n) + " samples, " + std::to_string(classes) + " classes");
    reference::Map logits = reference::make_map(n, {classes});
    logits.values = draw<T>(n * classes, 1, 0.0, 6.0);
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < n; ++i) {
      labels.push_back(static_cast<std::int32_t>(i * 13 % classes));
    }
    const reference::Loss expected = reference::softmax_cross_entropy(
        logits, labels, kDivisor, static_cast<double>(shape.smoothing));
    const auto found = run_in_every_order([&] {
      const LossRun<T> run(logits.values, labels, classes, shape.smoothing, kDivisor, kScale, true);
      return Outputs{{run.sums.loss}, {run.sums.metric}, run.dlogits};
    });
    // The error of the loss: exp() of numbers down to -12 is accurate to a few units, and `classes`
    // of them are added in f32. log() turns the relative error into an absolute error of each
    // sample.
    expect_close<float>({expected.loss}, found[0], 16 + classes / 32.0,
                        static_cast<double>(n) / kDivisor);
    EXPECT_EQ(found[1][0], expected.metric);
    Values scaled = expected.dlogits.values;
    for (double& value : scaled) value *= static_cast<double>(kScale);
    expect_close<T>(scaled, found[2], 16 + classes / 32.0, static_cast<double>(kScale) / kDivisor);

    const LossRun<T> without_gradient(logits.values, labels, classes, shape.smoothing, kDivisor,
                                      kScale, false);
    EXPECT_EQ(without_gradient.sums.loss, found[0][0]);
  }
}

TYPED_TEST(LossKernel, TakesTheMeanOverThePixelsThatCount) {
  using T = TypeParam;
  constexpr double kDivisor = 4.0;
  constexpr float kScale = 128.0F;
  constexpr std::int64_t kHeight = 5;
  constexpr std::int64_t kWidth = 7;
  constexpr std::int64_t kSamples = 4;
  for (const int classes : {2, 8, 21}) {
    reference::Map logits = reference::make_map(kSamples, {kHeight, kWidth, classes});
    logits.values = draw<T>(static_cast<std::int64_t>(logits.values.size()), 3, 0.0, 6.0);
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < kSamples * kHeight * kWidth; ++i) {
      const bool counts = i % 5 != 0 && i / (kHeight * kWidth) != 1;  // sample 1 has no such pixel
      labels.push_back(counts ? static_cast<std::int32_t>(i * 13 % classes) : 255);
    }
    const reference::Loss expected =
        reference::softmax_cross_entropy(logits, labels, kDivisor, 0.1F);
    const auto found = run_in_every_order([&] {
      const LossRun<T> run(logits.values, labels, classes, 0.1F, kDivisor, kScale, true,
                           static_cast<int>(kHeight * kWidth));
      return Outputs{{run.sums.loss}, {run.sums.metric}, run.dlogits};
    });
    expect_close<float>({expected.loss}, found[0], 16.0, kSamples / kDivisor);
    expect_close<float>({expected.metric}, found[1], 4.0, kSamples);
    Values scaled = expected.dlogits.values;
    for (double& value : scaled) value *= static_cast<double>(kScale);
    expect_close<T>(scaled, found[2], 16.0, static_cast<double>(kScale) / kDivisor);
  }
}

TYPED_TEST(LossKernel, CountsTheFirstOfEqualLogits) {
  // Of two equal logits the first must win: different threads read them, first the lower, then the
  // higher thread reads the first logit.
  for (const auto& [classes, first, second] :
       {std::array{100, 7, 40}, std::array{100, 30, 33}, std::array{300, 70, 250},
        std::array{300, 20, 256}}) {
    Values logits(static_cast<std::size_t>(classes));
    logits[static_cast<std::size_t>(first)] = 3.0;
    logits[static_cast<std::size_t>(second)] = 3.0;
    const LossRun<TypeParam> right(logits, {first}, classes, 0.0F, 1.0, 1.0F, true);
    EXPECT_EQ(right.sums.metric, 1.0);
    const LossRun<TypeParam> wrong(logits, {second}, classes, 0.0F, 1.0, 1.0F, true);
    EXPECT_EQ(wrong.sums.metric, 0.0);
  }
}

TYPED_TEST(LossKernel, AcceptsLargeLogits) {
  // The logits are 1000 because exp(1000) overflows every type.
  const LossRun<TypeParam> run({1000, 1000}, {0}, 2, 0.0F, 1.0, 1.0F, true);
  EXPECT_NEAR(run.sums.loss, std::log(2.0), 1e-6);  // up to f32 roundings
  EXPECT_EQ(run.dlogits, (Values{-0.5, 0.5}));
}

TYPED_TEST(LossKernel, HidesNoNaN) {
  const LossRun<TypeParam> run({NAN, 1.0}, {1}, 2, 0.0F, 1.0, 1.0F, true);
  EXPECT_TRUE(std::isnan(run.sums.loss));
}

TYPED_TEST(LossKernel, ReadsNothingForALabelThatIsNoClass) {
  const LossRun<TypeParam> run({1, 2, 3, 4}, {0, 2}, 2, 0.0F, 1.0, 1.0F, true);
  EXPECT_TRUE(std::isnan(run.sums.loss));
}

TYPED_TEST(LossKernel, IsZeroWithoutSamples) {
  const LossRun<TypeParam> run({}, {}, 10, 0.0F, 5.0, 1.0F, true);
  EXPECT_EQ(run.sums.loss, 0.0);
  EXPECT_EQ(run.sums.metric, 0.0);
}

// As LossRun, of a loss whose targets are numbers.
template <typename T>
struct NumberLossRun {
  NumberLossRun(const Values& x, const Values& targets, const NumberLossShape& shape, float scale,
                bool wants_gradient) {
    DeviceArray<T> values(x);
    DeviceArray<float> y(targets);
    DeviceArray<T> gradient(static_cast<std::int64_t>(x.size()));
    DeviceArray<unsigned char> scratch(number_loss_scratch(shape));
    DeviceArray<float> factor(Values{static_cast<double>(scale)});
    number_loss(shape, values.data(), y.data(), factor.data(),
                wants_gradient ? gradient.data() : nullptr, &sums, scratch.data(), kStream);
    dx = gradient.values();
  }
  LossSums sums{-1.0, -1.0};
  Values dx;
};

TYPED_TEST(LossKernel, GivesLossMetricAndGradientOfNumbers) {
  using T = TypeParam;
  constexpr double kDivisor = 7.0;
  constexpr float kScale = 128.0F;
  for (const bool is_binary_cross_entropy : {false, true}) {
    for (const auto& [n, count] : {std::array{1, 1}, std::array{3, 8}, std::array{40, 5},
                                   std::array{9, 100}, std::array{5, 1000}, std::array{700, 2}}) {
      SCOPED_TRACE(std::to_string(n) + " samples of " + std::to_string(count));
      reference::Map x = reference::make_map(n, {count});
      x.values = draw<T>(n * count, 1, 0.0, 6.0);
      const Values targets = draw<float>(n * count, 2, 0.5, 0.5);
      const reference::Loss expected = is_binary_cross_entropy
                                           ? reference::binary_cross_entropy(x, targets, kDivisor)
                                           : reference::mean_squared_error(x, targets, kDivisor);
      const NumberLossShape shape{.n = n,
                                  .values = count,
                                  .is_binary_cross_entropy = is_binary_cross_entropy,
                                  .divisor = kDivisor};
      const auto found = run_in_every_order([&] {
        const NumberLossRun<T> run(x.values, targets, shape, kScale, true);
        return Outputs{{run.sums.loss}, {run.sums.metric}, run.dx};
      });
      // A difference of two numbers is rounded to f32, and squared it is at most 50.
      expect_close<float>({expected.loss}, found[0], 16.0, 50.0 * n / kDivisor);
      expect_close<float>({expected.metric}, found[1], 16.0, 7.0 * n);
      Values scaled = expected.dlogits.values;
      for (double& value : scaled) value *= static_cast<double>(kScale);
      expect_close<T>(scaled, found[2], 16.0,
                      14.0 * static_cast<double>(kScale) / kDivisor / count);
      const NumberLossRun<T> without_gradient(x.values, targets, shape, kScale, false);
      EXPECT_EQ(without_gradient.sums.loss, found[0][0]);
    }
  }
}

TYPED_TEST(LossKernel, AcceptsLargeLogitsOfBinaryCrossEntropy) {
  const NumberLossShape shape{.n = 1, .values = 2, .is_binary_cross_entropy = true};
  const NumberLossRun<TypeParam> run({1000, -1000}, {1, 1}, shape, 1.0F, true);
  EXPECT_EQ(run.sums.loss, 500.0);
  EXPECT_EQ(run.sums.metric, 0.5);
  EXPECT_EQ(run.dx, (Values{0.0, -0.5}));
}

TYPED_TEST(LossKernel, IsZeroWithoutSamplesOfNumbers) {
  const NumberLossRun<TypeParam> run({}, {}, {.n = 0, .values = 3}, 1.0F, true);
  EXPECT_EQ(run.sums.loss, 0.0);
  EXPECT_EQ(run.sums.metric, 0.0);
}

}  // namespace
}  // namespace syncopate::cuda
