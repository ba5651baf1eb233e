// Tests the kernels of layer norm.
#include <cmath>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;
constexpr float kEpsilon = 1e-3F;

// Besides the shapes of for_each_row_case(), rows that a whole block computes.
void for_each_case(const std::function<void(const RowShape&, std::int64_t offset)>& body) {
  for_each_row_case(body);
  for (const std::int64_t offset : {0, 1}) body({3, 2056}, offset);
}

reference::Map map_of(const RowShape& shape, Values values) {
  reference::Map map = reference::make_map(shape.rows, {shape.channels});
  map.values = std::move(values);
  return map;
}

template <typename T>
class LayerNormKernels : public testing::Test {};
TYPED_TEST_SUITE(LayerNormKernels, ElementTypes);

TYPED_TEST(LayerNormKernels, HaveTheResultsOfTheReference) {
  using T = TypeParam;
  for_each_case([](const RowShape& shape, std::int64_t offset) {
    const LayerNormOp op{.epsilon = kEpsilon};
    // A mean that is large beside the deviation, so that squares without the mean would cancel.
    const reference::Map x = map_of(shape, draw<T>(shape.count(), 1, 3.0));
    const reference::Map dy = map_of(shape, draw<T>(shape.count(), 2));
    const Values weights = draw<float>(shape.channels, 3, 1.0, 0.5);
    const Values biases = draw<float>(shape.channels, 4);
    const auto expected = reference::layer_norm_backward(x, op, weights, dy);
    const bool in_place = offset != 0;
    const auto found = run_in_every_order([&] {
      const LayerNormShape norm{shape.rows, shape.channels, kEpsilon};
      DeviceArray<T> in(x.values, offset);
      DeviceArray<T> gradient(dy.values, offset);
      DeviceArray<float> weight(weights, offset);
      DeviceArray<float> bias(biases, offset);
      DeviceArray<T> out(shape.count(), offset);
      DeviceArray<T> other(shape.count(), offset);
      DeviceArray<T>& dx = in_place ? gradient : other;
      DeviceArray<float> mean(shape.rows);
      DeviceArray<float> inverse(shape.rows);
      DeviceArray<float> parameters(2 * shape.channels);
      DeviceArray<unsigned char> scratch(layer_norm_scratch(norm));
      layer_norm(norm, in.data(), weight.data(), bias.data(), out.data(), mean.data(),
                 inverse.data(), kStream);
      layer_norm_parameter_gradients(norm, in.data(), gradient.data(), mean.data(), inverse.data(),
                                     parameters.data(), scratch.data(), kStream);
      layer_norm_backward(norm, in.data(), gradient.data(), weight.data(), mean.data(),
                          inverse.data(), dx.data(), kStream);
      return Outputs{out.values(), dx.values(), parameters.values()};
    });
    // A mean near 3 is rounded, and the inverse deviation, at most 32, magnifies its error.
    expect_close<T>(reference::layer_norm(x, op, weights, biases).values, found[0], 40, 32.0);
    expect_close<T>(expected.x.values, found[1], 40, 32.0 * 3.0);
    Values parameters = expected.scale;
    parameters.insert(parameters.end(), expected.shift.begin(), expected.shift.end());
    expect_close<float>(parameters, found[2], kF32Additions + 16.0,
                        2.0 * std::sqrt(static_cast<double>(shape.rows)) * 8.0);
  });
}

TYPED_TEST(LayerNormKernels, KeepNoStatisticsInEvaluations) {
  DeviceArray<TypeParam> x(Values{1.0, 3.0});
  DeviceArray<TypeParam> y(2);
  DeviceArray<float> weight(Values{2.0, 1.0});
  DeviceArray<float> bias(Values{0.0, 1.0});
  layer_norm({1, 2, 0.0F}, x.data(), weight.data(), bias.data(), y.data(), nullptr, nullptr,
             kStream);
  EXPECT_EQ(y.values(), (Values{-2.0, 2.0}));
}

TYPED_TEST(LayerNormKernels, GiveZeroGradientsWithoutRows) {
  DeviceArray<TypeParam> x(0);
  DeviceArray<float> rows(0);
  DeviceArray<float> parameters(6);
  const LayerNormShape shape{0, 3, kEpsilon};
  DeviceArray<unsigned char> scratch(layer_norm_scratch(shape));
  layer_norm(shape, x.data(), rows.data(), rows.data(), x.data(), rows.data(), rows.data(),
             kStream);
  layer_norm_backward(shape, x.data(), x.data(), rows.data(), rows.data(), rows.data(), x.data(),
                      kStream);
  layer_norm_parameter_gradients(shape, x.data(), x.data(), rows.data(), rows.data(),
                                 parameters.data(), scratch.data(), kStream);
  EXPECT_EQ(parameters.values(), Values(6));
}

}  // namespace
}  // namespace syncopate::cuda
