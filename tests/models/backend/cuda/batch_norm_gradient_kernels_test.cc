// Tests the batch norm backward kernels against the double-precision loops of tests/reference.
#include <algorithm>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/batch_norm_case.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

template <typename T>
class BatchNormGradientKernels : public testing::Test {};
TYPED_TEST_SUITE(BatchNormGradientKernels, ElementTypes);

// BackwardOptions selects the optional parts of a batch norm backward pass.
struct BackwardOptions {
  bool relu, two_gradients, wants_added, in_place;
};
constexpr BackwardOptions kBackwardOptions[] = {{false, false, false, false},
                                                {true, false, false, true},
                                                {true, true, true, false},
                                                {false, true, true, true}};

TYPED_TEST(BatchNormGradientKernels, GiveGradientsOfAMaskedSum) {
  using T = TypeParam;
  for_each_row_case([](const RowShape& rows, std::int64_t offset) {
    const BatchNormCase<T> subject(rows);
    Values outputs = draw<T>(rows.count(), 8);  // any values: only their signs are used
    for (double& value : outputs) value = std::max(value, 0.0);
    const Values first = draw<T>(rows.count(), 9);
    const Values second = draw<T>(rows.count(), 10);
    const auto channels = static_cast<std::size_t>(rows.channels);
    for (const BackwardOptions& options : kBackwardOptions) {
      if (options.relu && !can_mask<T>(rows, offset)) continue;
      SCOPED_TRACE(options.relu ? "relu" : "no relu");
      Values dz = first;
      for (std::size_t i = 0; i < dz.size(); ++i) {
        if (options.two_gradients) dz[i] += second[i];
        if (options.relu && !(outputs[i] > 0.0)) dz[i] = 0.0;
        if (options.wants_added) dz[i] = to_float(from_float<T>(static_cast<float>(dz[i])));
      }
      const auto expected = reference::batch_norm_backward(
          map_of(rows, subject.x), subject.moments, operation(), subject.gamma, map_of(rows, dz));
      const BatchNormShape shape = batch_norm_shape(rows, options.relu);
      const auto found = run_in_every_order([&] {
        DeviceArray<T> x(subject.x, offset);
        DeviceArray<std::uint8_t> mask_bytes(mask_of<T>(rows, outputs));
        DeviceArray<T> dy(first, offset);
        DeviceArray<T> dy2(second, offset);
        DeviceArray<float> mean(subject.moments.mean, offset);
        DeviceArray<float> inverse(subject.inverse, offset);
        DeviceArray<float> gamma(subject.gamma, offset);
        DeviceArray<double> sums(2 * rows.channels + 1);
        DeviceArray<unsigned char> scratch(batch_norm_scratch(shape));
        DeviceArray<float> dgamma(rows.channels);
        DeviceArray<float> dbeta(rows.channels);
        DeviceArray<float> coefficients(3 * rows.channels, offset);
        DeviceArray<T> fresh(rows.count(), offset);
        DeviceArray<T> dadded(rows.count(), offset);
        DeviceArray<T>& dx = !options.in_place ? fresh : options.two_gradients ? dy2 : dy;
        const std::uint8_t* const mask = options.relu ? mask_bytes.data() : nullptr;
        const T* const other = options.two_gradients ? dy2.data() : nullptr;
        T* const stored_dz = options.wants_added ? dadded.data() : nullptr;
        batch_norm_gradient_sums(shape, x.data(), mask, dy.data(), other, mean.data(),
                                 inverse.data(), stored_dz, sums.data(), scratch.data(), kStream);
        batch_norm_finish_gradient(shape, sums.data(), sums.data(), mean.data(), inverse.data(),
                                   gamma.data(), dgamma.data(), dbeta.data(), coefficients.data(),
                                   kStream);
        if (options.wants_added) {  // the stored dz takes the place of mask and gradients
          batch_norm_backward<T>(shape, x.data(), nullptr, stored_dz, nullptr, coefficients.data(),
                                 dx.data(), kStream);
        } else {
          batch_norm_backward<T>(shape, x.data(), mask, dy.data(), other, coefficients.data(),
                                 dx.data(), kStream);
        }
        return Outputs{dgamma.values(), dbeta.values(), dx.values(),
                       options.wants_added ? dadded.values() : Values(dz.size(), 0.0)};
      });
      // Each term of the sums over rows (dgamma and dbeta) may be wrong by the rounding of the mean
      // (near 4) to f32, times the inverse deviation.
      const double term = 2.0 * 4.0 * subject.largest_inverse();
      const double rows_sum = term * static_cast<double>(rows.rows);
      expect_close<float>(expected.scale, found[0], kF32Additions, rows_sum);
      expect_close<float>(expected.shift, found[1], kF32Additions, rows_sum);
      // In dx, the errors of dgamma and dbeta, averaged over the rows, are multiplied by gamma, the
      // inverse deviation and xhat.
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
