// Tests the batch norm forward kernels against the double-precision loops of tests/reference.
#include <cmath>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/batch_norm_case.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

template <typename T>
class BatchNormKernels : public testing::Test {};
TYPED_TEST_SUITE(BatchNormKernels, ElementTypes);

TYPED_TEST(BatchNormKernels, SumWhatMomentsAreMadeOf) {
  using T = TypeParam;
  for_each_row_case([](const RowShape& rows, std::int64_t offset) {
    const BatchNormCase<T> subject(rows);
    const BatchNormShape shape = batch_norm_shape(rows, false);
    const auto found = run_in_every_order([&] {
      DeviceArray<T> x(subject.x, offset);
      DeviceArray<float> shift(subject.shift, offset);
      DeviceArray<double> sums(2 * rows.channels + 1);
      DeviceArray<unsigned char> scratch(batch_norm_scratch(shape));
      batch_norm_sums(shape, x.data(), shift.data(), sums.data(), scratch.data(), kStream);
      return Outputs{sums.values()};
    });
    // The kernel sums terms x - shift of up to 1.5, and their squares of up to 2.25.
    expect_close<float>(subject.sums(), found[0], kF32Additions,
                        2.25 * static_cast<double>(rows.rows));
    EXPECT_EQ(found[0].back(), static_cast<double>(rows.rows));
  });
}

TYPED_TEST(BatchNormKernels, SumZerosWithoutRows) {
  const BatchNormShape shape = batch_norm_shape({0, 3}, true);
  DeviceArray<TypeParam> empty(0);
  DeviceArray<float> constants(Values{1, 2, 3});
  DeviceArray<unsigned char> scratch(batch_norm_scratch(shape));
  DeviceArray<double> forward(7);
  batch_norm_sums(shape, empty.data(), constants.data(), forward.data(), scratch.data(), kStream);
  EXPECT_EQ(forward.values(), Values(7));
  DeviceArray<double> backward(7);
  DeviceArray<std::uint8_t> mask(0);
  batch_norm_gradient_sums(shape, empty.data(), mask.data(), empty.data(), empty.data(),
                           constants.data(), constants.data(), empty.data(), backward.data(),
                           scratch.data(), kStream);
  EXPECT_EQ(backward.values(), Values(7));
  batch_norm_apply(shape, empty.data(), constants.data(), constants.data(), constants.data(),
                   constants.data(), empty.data(), empty.data(), mask.data(), kStream);
  batch_norm_backward(shape, empty.data(), mask.data(), empty.data(), empty.data(),
                      constants.data(), empty.data(), kStream);
}

TEST(BatchNormShiftSums, AreThoseAroundTheShift) {
  for (const RowShape& rows : {RowShape{1, 1}, RowShape{50, 300}, RowShape{1000, 7}}) {
    const BatchNormCase<float> subject(rows);
    BatchNormCase<float> unshifted = subject;
    unshifted.shift.assign(subject.shift.size(), 0.0);
    const Values whole = unshifted.sums();
    const auto channels = static_cast<std::ptrdiff_t>(rows.channels);
    const auto found = run_in_every_order([&] {
      DeviceArray<float> x_sums(Values(whole.begin(), whole.begin() + channels), 1);
      DeviceArray<float> squares(Values(whole.begin() + channels, whole.end() - 1), 1);
      DeviceArray<float> shift(subject.shift, 1);
      DeviceArray<double> sums(2 * rows.channels + 1);
      batch_norm_shift_sums(batch_norm_shape(rows, false), x_sums.data(), squares.data(),
                            shift.data(), sums.data(), kStream);
      return Outputs{sums.values()};
    });
    // The inputs of the kernel, the sums of x (up to 4) and of its square, are rounded to f32 once.
    // The sum of squares around the shift contains the sum of x, times the shift (up to 3.5),
    // twice.
    expect_close<float>(subject.sums(), found[0], 1,
                        (16.0 + 2.0 * 3.5 * 4.0) * static_cast<double>(rows.rows));
    EXPECT_EQ(found[0].back(), static_cast<double>(rows.rows));
  }
}

// A LargeMean has rows of deviation 1 whose sum of squares is wrong by `roundings` roundings of
// f32.
struct LargeMean {
  double mean = 0.0;
  double roundings = 0.0;
  static constexpr double kRows = 1000.0;

  // Runs the kernel; returns mean, inverse deviation, running mean and running variance.
  Values finished() const {
    const double sum = mean * kRows;
    const double squares = (mean * mean + 1.0) * kRows * (1.0 + roundings * 0x1p-24);
    const BatchNormShape shape = batch_norm_shape({static_cast<std::int64_t>(kRows), 1}, false);
    DeviceArray<float> x_sums(Values{sum});
    DeviceArray<float> x_squares(Values{squares});
    DeviceArray<float> running_mean(Values{0.0});
    DeviceArray<float> running_variance(Values{1.0});
    DeviceArray<double> sums(3);
    DeviceArray<float> batch_mean(1);
    DeviceArray<float> inverse(1);
    batch_norm_shift_sums(shape, x_sums.data(), x_squares.data(), running_mean.data(), sums.data(),
                          kStream);
    batch_norm_finish(shape, sums.data(), running_mean.data(), batch_mean.data(), inverse.data(),
                      running_mean.data(), running_variance.data(), kStream);
    return {batch_mean.values()[0], inverse.values()[0], running_mean.values()[0],
            running_variance.values()[0]};
  }
};

// A large mean costs the variance its accuracy. An f16 map loses as much: at a mean of 100
// deviations the steps of f16 are 1/16 of a deviation.
TEST(BatchNormFinish, LosesOfTheVarianceWhatSumsOfF32HaveLostOfSquares) {
  for (const double mean : {0.0, 10.0, 100.0}) {
    for (const double roundings : {-4.0, 4.0}) {
      const Values found = LargeMean{mean, roundings}.finished();
      EXPECT_NEAR(found[0], mean, mean * 0x1p-23);
      const double variance = 1.0 / (found[1] * found[1]) - static_cast<double>(kEpsilon);
      // The error of the variance consists of `roundings` (up to 4) of the sum of squares, and of
      // one rounding of each stored sum; the rounding of the sum of x counts twice.
      EXPECT_NEAR(variance, 1.0, (4.0 + 1.0 + 2.0) * 0x1p-24 * (mean * mean + 1.0) + 1e-6);
    }
  }
}

TEST(BatchNormFinish, TakesAVarianceThatRoundingsMadeNegativeAsZero) {
  const Values found = LargeMean{10000.0, -100.0}.finished();
  EXPECT_FLOAT_EQ(static_cast<float>(found[0]), 10000.0F);
  EXPECT_FLOAT_EQ(static_cast<float>(found[1]), 1.0F / std::sqrt(kEpsilon));
  EXPECT_FLOAT_EQ(static_cast<float>(found[2]), 0.25F * 10000.0F);
  EXPECT_FLOAT_EQ(static_cast<float>(found[3]), 0.75F);  // 0.75 * 1 + 0.25 * 0
}

TEST(BatchNormFinish, GivesMomentsAndMovesTheRunningStatistics) {
  for (const RowShape& rows : {RowShape{2, 1}, RowShape{50, 300}, RowShape{1000, 7}}) {
    const BatchNormCase<float> subject(rows);
    const Values variance = draw<float>(rows.channels, 5, 2.0, 1.0);
    const auto expected = reference::updated_statistics({subject.shift, variance}, subject.moments,
                                                        operation(), rows.rows);
    const auto found = run_in_every_order([&] {
      DeviceArray<double> sums(subject.sums());
      DeviceArray<float> running_mean(subject.shift);  // also passed as the shift, as in training
      DeviceArray<float> running_variance(variance);
      DeviceArray<float> mean(rows.channels);
      DeviceArray<float> inverse(rows.channels);
      batch_norm_finish(batch_norm_shape(rows, false), sums.data(), running_mean.data(),
                        mean.data(), inverse.data(), running_mean.data(), running_variance.data(),
                        kStream);
      return Outputs{mean.values(), inverse.values(), running_mean.values(),
                     running_variance.values()};
    });
    // The update of running statistics is exact but for one rounding, since the kernel computes in
    // f64.
    expect_close<float>(subject.moments.mean, found[0], 1);
    expect_close<float>(subject.inverse, found[1], 1);
    expect_close<float>(expected.mean, found[2], 1);
    expect_close<float>(expected.variance, found[3], 1);
  }
}

TEST(BatchNormFinish, TakesTheVarianceOfOneRowAsItIs) {
  DeviceArray<double> sums(Values{0.5, 0.25, 1.0});
  DeviceArray<float> shift(Values{2.0});
  DeviceArray<float> mean(1);
  DeviceArray<float> inverse(1);
  DeviceArray<float> running_mean(Values{2.0});
  DeviceArray<float> running_variance(Values{4.0});
  batch_norm_finish(batch_norm_shape({1, 1}, false), sums.data(), shift.data(), mean.data(),
                    inverse.data(), running_mean.data(), running_variance.data(), kStream);
  EXPECT_EQ(mean.values(), Values{2.5});
  EXPECT_EQ(running_mean.values(), Values{2.125});    // 0.75 * 2 + 0.25 * 2.5
  EXPECT_EQ(running_variance.values(), Values{3.0});  // 0.75 * 4 + 0.25 * 0
}

TEST(BatchNormFinish, MovesNothingWhenNoReplicaHadARow) {
  DeviceArray<double> sums(Values{0, 0, 0});
  DeviceArray<float> mean(1);
  DeviceArray<float> inverse(1);
  DeviceArray<float> running_mean(Values{2.0});
  DeviceArray<float> running_variance(Values{4.0});
  batch_norm_finish(batch_norm_shape({0, 1}, false), sums.data(), running_mean.data(), mean.data(),
                    inverse.data(), running_mean.data(), running_variance.data(), kStream);
  EXPECT_EQ(running_mean.values(), Values{2.0});
  EXPECT_EQ(running_variance.values(), Values{4.0});
}

TEST(BatchNormInverseStddev, IsThatOfTheRunningVariance) {
  const Values variance = draw<float>(300, 6, 2.0, 1.0);
  Values expected;
  for (const double v : variance)
    expected.push_back(1.0 / std::sqrt(v + static_cast<double>(kEpsilon)));
  DeviceArray<float> running(variance);
  DeviceArray<float> inverse(300);
  batch_norm_inverse_stddev(batch_norm_shape({1, 300}, false), running.data(), inverse.data(),
                            kStream);
  expect_close<float>(expected, inverse.values(), 1);
}

TYPED_TEST(BatchNormKernels, NormaliseScaleAddAndRectify) {
  using T = TypeParam;
  for_each_row_case([](const RowShape& rows, std::int64_t offset) {
    const BatchNormCase<T> subject(rows);
    const Values others = draw<T>(rows.count(), 7);
    for (const bool add : {false, true}) {
      for (const bool relu : {false, true}) {
        reference::Map y = reference::batch_norm(map_of(rows, subject.x), subject.moments,
                                                 operation(), subject.gamma, subject.beta);
        if (add) y = reference::add(y, map_of(rows, others));
        if (relu) y = reference::relu(y);
        const bool masks = relu && can_mask<T>(rows, offset);
        const auto found = run_in_every_order([&] {
          DeviceArray<T> x(subject.x, offset);
          DeviceArray<std::uint8_t> mask(
              masks ? batch_norm_mask_bytes<T>({rows.rows, rows.channels}) : 0);
          DeviceArray<float> mean(subject.moments.mean, offset);
          DeviceArray<float> inverse(subject.inverse, offset);
          DeviceArray<float> gamma(subject.gamma, offset);
          DeviceArray<float> beta(subject.beta, offset);
          DeviceArray<T> added(others, offset);
          DeviceArray<T> out(rows.count(), offset);
          batch_norm_apply(batch_norm_shape(rows, relu), x.data(), mean.data(), inverse.data(),
                           gamma.data(), beta.data(), add ? added.data() : nullptr, out.data(),
                           masks ? mask.data() : nullptr, kStream);
          return Outputs{out.values(), mask.values()};
        });
        if (masks) {
          EXPECT_EQ(found[1], mask_of<T>(rows, found[0]));
        }
        // The error of batch norm's output y: the mean (near 4) is rounded to f32, and the inverse
        // deviation multiplies that error by gamma.
        expect_close<T>(y.values, found[0], 4, 4.0 * 1.5 * subject.largest_inverse() + 2.0);
      }
    }
  });
}

}  // namespace
}  // namespace syncopate::cuda
