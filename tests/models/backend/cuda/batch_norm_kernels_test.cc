// Batch norm, forward and backward, against the double-precision loops of tests/reference.
#include <cmath>

#include "models/backend/cuda/kernels/kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;
constexpr float kEpsilon = 1e-3F;  // large enough that one row has a usable deviation
constexpr float kMomentum = 0.25F;

BatchNormShape batch_norm_shape(const RowShape& shape, bool relu) {
  return {shape.rows, shape.channels, kEpsilon, kMomentum, relu};
}

BatchNormOp operation() { return {.epsilon = kEpsilon, .momentum = kMomentum}; }

reference::Map map_of(const RowShape& shape, const Values& values) {
  reference::Map map = reference::make_map(shape.rows, {shape.channels});
  map.values = values;
  return map;
}

// A mean far from zero against the deviation, as after a convolution with a bias.
template <typename T>
struct Case {
  explicit Case(const RowShape& rows)
      : shape(rows),
        x(draw<T>(rows.count(), 1, 3.0, 1.0)),
        gamma(draw<float>(rows.channels, 2, 1.0, 0.5)),
        beta(draw<float>(rows.channels, 3)),
        shift(draw<float>(rows.channels, 4, 3.0, 0.5)),
        moments(reference::batch_moments(map_of(rows, x))) {
    for (const double variance : moments.variance) {
      inverse.push_back(1.0 / std::sqrt(variance + static_cast<double>(kEpsilon)));
    }
  }
  // Sums as the kernel promises them.
  Values sums() const {
    const auto channels = static_cast<std::size_t>(shape.channels);
    Values result(2 * channels + 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double shifted = x[i] - shift[i % channels];
      result[i % channels] += shifted;
      result[channels + i % channels] += shifted * shifted;
    }
    result[2 * channels] = static_cast<double>(shape.rows);
    return result;
  }
  double largest_inverse() const { return *std::max_element(inverse.begin(), inverse.end()); }

  RowShape shape;
  Values x, gamma, beta, shift;
  reference::Moments moments;
  Values inverse;
};

template <typename T>
class BatchNormKernels : public testing::Test {};
TYPED_TEST_SUITE(BatchNormKernels, ElementTypes);

TYPED_TEST(BatchNormKernels, SumWhatMomentsAreMadeOf) {
  using T = TypeParam;
  for_each_row_case([](const RowShape& rows, std::int64_t offset) {
    const Case<T> subject(rows);
    const BatchNormShape shape = batch_norm_shape(rows, false);
    const auto found = run_in_every_order([&] {
      DeviceArray<T> x(subject.x, offset);
      DeviceArray<float> shift(subject.shift, 1);
      DeviceArray<double> sums(2 * rows.channels + 1);
      DeviceArray<unsigned char> scratch(batch_norm_scratch(shape));
      batch_norm_sums(shape, x.data(), shift.data(), sums.data(), scratch.data(), kStream);
      return Outputs{sums.values()};
    });
    // Terms up to 1.5 and its square.
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
  batch_norm_gradient_sums(shape, empty.data(), empty.data(), empty.data(), empty.data(),
                           constants.data(), constants.data(), backward.data(), scratch.data(),
                           kStream);
  EXPECT_EQ(backward.values(), Values(7));
  batch_norm_apply(shape, empty.data(), constants.data(), constants.data(), constants.data(),
                   constants.data(), empty.data(), empty.data(), kStream);
  batch_norm_backward(shape, empty.data(), empty.data(), empty.data(), empty.data(),
                      constants.data(), constants.data(), constants.data(), backward.data(),
                      empty.data(), empty.data(), kStream);
}

TEST(BatchNormFinish, GivesMomentsAndMovesTheRunningStatistics) {
  for (const RowShape& rows : {RowShape{2, 1}, RowShape{50, 300}, RowShape{1000, 7}}) {
    const Case<float> subject(rows);
    const Values variance = draw<float>(rows.channels, 5, 2.0, 1.0);
    const auto expected = reference::updated_statistics({subject.shift, variance}, subject.moments,
                                                        operation(), rows.rows);
    const auto found = run_in_every_order([&] {
      DeviceArray<double> sums(subject.sums());
      DeviceArray<float> running_mean(subject.shift);  // is the shift, too, as in training
      DeviceArray<float> running_variance(variance);
      DeviceArray<float> mean(rows.channels);
      DeviceArray<float> inverse(rows.channels);
      batch_norm_finish(batch_norm_shape(rows, false), sums.data(), running_mean.data(),
                        mean.data(), inverse.data(), running_mean.data(), running_variance.data(),
                        kStream);
      return Outputs{mean.values(), inverse.values(), running_mean.values(),
                     running_variance.values()};
    });
    // Everything in f64, then one rounding.
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
    const Case<T> subject(rows);
    const Values others = draw<T>(rows.count(), 7);
    for (const bool add : {false, true}) {
      for (const bool relu : {false, true}) {
        reference::Map y = reference::batch_norm(map_of(rows, subject.x), subject.moments,
                                                 operation(), subject.gamma, subject.beta);
        if (add) y = reference::add(y, map_of(rows, others));
        if (relu) y = reference::relu(y);
        const auto found = run_in_every_order([&] {
          DeviceArray<T> x(subject.x, offset);
          DeviceArray<float> mean(subject.moments.mean, 1);
          DeviceArray<float> inverse(subject.inverse, 1);
          DeviceArray<float> gamma(subject.gamma, 1);
          DeviceArray<float> beta(subject.beta, 1);
          DeviceArray<T> added(others, offset);
          DeviceArray<T> out(rows.count(), offset);
          batch_norm_apply(batch_norm_shape(rows, relu), x.data(), mean.data(), inverse.data(),
                           gamma.data(), beta.data(), add ? added.data() : nullptr, out.data(),
                           kStream);
          return Outputs{out.values()};
        });
        // The mean is rounded to f32 near 4, and the inverse multiplies that by gamma.
        expect_close<T>(y.values, found[0], 4, 4.0 * 1.5 * subject.largest_inverse() + 2.0);
      }
    }
  });
}

// What the backward kernels are asked for.
struct BackwardOptions {
  bool relu, two_gradients, wants_added, in_place;
};
constexpr BackwardOptions kBackwardOptions[] = {{false, false, false, false},
                                                {true, false, false, true},
                                                {true, true, true, false},
                                                {false, true, true, true}};

TYPED_TEST(BatchNormKernels, GiveGradientsOfAMaskedSum) {
  using T = TypeParam;
  for_each_row_case([](const RowShape& rows, std::int64_t offset) {
    const Case<T> subject(rows);
    Values outputs = draw<T>(rows.count(), 8);  // any signs: only they matter
    for (double& value : outputs) value = std::max(value, 0.0);
    const Values first = draw<T>(rows.count(), 9);
    const Values second = draw<T>(rows.count(), 10);
    const auto channels = static_cast<std::size_t>(rows.channels);
    for (const BackwardOptions& options : kBackwardOptions) {
      SCOPED_TRACE(options.relu ? "relu" : "no relu");
      Values dz = first;
      for (std::size_t i = 0; i < dz.size(); ++i) {
        if (options.two_gradients) dz[i] += second[i];
        if (options.relu && !(outputs[i] > 0.0)) dz[i] = 0.0;
      }
      const auto expected = reference::batch_norm_backward(
          map_of(rows, subject.x), subject.moments, operation(), subject.gamma, map_of(rows, dz));
      const BatchNormShape shape = batch_norm_shape(rows, options.relu);
      const auto found = run_in_every_order([&] {
        DeviceArray<T> x(subject.x, offset);
        DeviceArray<T> y(outputs, offset);
        DeviceArray<T> dy(first, offset);
        DeviceArray<T> dy2(second, offset);
        DeviceArray<float> mean(subject.moments.mean, 1);
        DeviceArray<float> inverse(subject.inverse, 1);
        DeviceArray<float> gamma(subject.gamma, 1);
        DeviceArray<double> sums(2 * rows.channels + 1);
        DeviceArray<unsigned char> scratch(batch_norm_scratch(shape));
        DeviceArray<float> dgamma(rows.channels);
        DeviceArray<float> dbeta(rows.channels);
        DeviceArray<T> fresh(rows.count(), offset);
        DeviceArray<T> dadded(rows.count(), offset);
        DeviceArray<T>& dx = !options.in_place ? fresh : options.two_gradients ? dy2 : dy;
        const T* const mask = options.relu ? y.data() : nullptr;
        const T* const other = options.two_gradients ? dy2.data() : nullptr;
        batch_norm_gradient_sums(shape, x.data(), mask, dy.data(), other, mean.data(),
                                 inverse.data(), sums.data(), scratch.data(), kStream);
        batch_norm_parameter_gradients(shape, sums.data(), dgamma.data(), dbeta.data(), kStream);
        batch_norm_backward(shape, x.data(), mask, dy.data(), other, mean.data(), inverse.data(),
                            gamma.data(), sums.data(), dx.data(),
                            options.wants_added ? dadded.data() : nullptr, kStream);
        return Outputs{dgamma.values(), dbeta.values(), dx.values(),
                       options.wants_added ? dadded.values() : Values(dz.size(), 0.0)};
      });
      // Each term carries the rounding of the mean (near 4) to f32, times the inverse.
      const double term = 2.0 * 4.0 * subject.largest_inverse();
      const double rows_sum = term * static_cast<double>(rows.rows);
      expect_close<float>(expected.scale, found[0], kF32Additions, rows_sum);
      expect_close<float>(expected.shift, found[1], kF32Additions, rows_sum);
      // Those errors, averaged over the rows, times gamma, the inverse and xhat.
      const double largest_xhat = 2.0 * subject.largest_inverse();
      expect_close<T>(expected.x.values, found[2], 2 * kF32Additions,
                      1.5 * subject.largest_inverse() * term * (1.0 + largest_xhat));
      expect_close<T>(options.wants_added ? dz : Values(dz.size(), 0.0), found[3], 1, 2.0);
      ASSERT_EQ(found[0].size(), channels);
    }
  });
}

}  // namespace
}  // namespace syncopate::cuda
