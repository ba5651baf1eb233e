// Tests the bias kernel and the kernel of its gradient.
#include <cmath>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

template <typename T>
class BiasKernels : public testing::Test {};
TYPED_TEST_SUITE(BiasKernels, ElementTypes);

TYPED_TEST(BiasKernels, AddABiasToEveryRow) {
  using T = TypeParam;
  for_each_row_case([](const RowShape& shape, std::int64_t offset) {
    const Values values = draw<T>(shape.count(), 1);
    const Values biases = draw<float>(shape.channels, 2);
    for (const bool relu : {false, true}) {
      Values expected = values;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += biases[i % biases.size()];
        if (relu) expected[i] = std::max(expected[i], 0.0);
      }
      const auto found = run_in_every_order([&] {
        DeviceArray<T> y(values, offset);
        DeviceArray<float> bias(biases, offset);
        add_bias(y.data(), bias.data(), shape.rows, shape.channels, relu, kStream);
        return Outputs{y.values()};
      });
      expect_close<T>(expected, found[0], 1, 2.0);
    }
  });
}

TYPED_TEST(BiasKernels, SumGradientsOverRows) {
  using T = TypeParam;
  for_each_row_case([](const RowShape& shape, std::int64_t offset) {
    const Values gradients = draw<T>(shape.count(), 3);
    const auto channels = static_cast<std::size_t>(shape.channels);
    Values expected(channels);
    Values magnitudes(channels);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      expected[i % channels] += gradients[i];
      magnitudes[i % channels] += std::abs(gradients[i]);
    }
    const auto found = run_in_every_order([&] {
      DeviceArray<T> dy(gradients, offset);
      DeviceArray<float> db(shape.channels, 1);
      DeviceArray<unsigned char> scratch(bias_gradient_scratch(shape.rows, shape.channels));
      bias_gradient(dy.data(), db.data(), shape.rows, shape.channels, scratch.data(), kStream);
      return Outputs{db.values()};
    });
    // The bias gradient is f32 for every T; a thread adds few rows in f32 before f64 takes over.
    expect_close<float>(expected, found[0], kF32Additions, magnitudes);
  });
}

TYPED_TEST(BiasKernels, GiveZeroGradientsWithoutRows) {
  DeviceArray<TypeParam> dy(0);
  DeviceArray<float> db(5);
  DeviceArray<unsigned char> scratch(bias_gradient_scratch(0, 5));
  add_bias(dy.data(), db.data(), 0, 5, true, kStream);
  bias_gradient(dy.data(), db.data(), 0, 5, scratch.data(), kStream);
  EXPECT_EQ(db.values(), Values(5));
}

}  // namespace
}  // namespace syncopate::cuda
