// Tests pooling and the shortcut against the double-precision loops of tests/reference.
#include <cmath>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

// The pooling shapes have windows side by side, overlapping, and with gaps; maps that windows do
// not fill; one pixel; a window that is the whole map; scalar and packed channels; and the largest
// padding that a window allows.
constexpr PoolShape kPoolShapes[] = {
    {2, 6, 6, 8, 2, 2},    {1, 7, 5, 3, 2, 2},    {2, 7, 9, 16, 3, 2},    {3, 8, 6, 5, 3, 1},
    {1, 9, 9, 8, 2, 3},    {1, 1, 1, 1, 1, 1},    {1, 16, 16, 1, 16, 1},  {5, 16, 12, 264, 2, 2},
    {2, 8, 7, 8, 3, 2, 1}, {1, 7, 8, 3, 3, 2, 1}, {2, 9, 6, 16, 5, 1, 2}, {1, 1, 1, 4, 3, 2, 1},
    {1, 7, 9, 5, 3, 3, 1}};

std::string to_string(const PoolShape& shape) {
  return std::to_string(shape.n) + " x [" + std::to_string(shape.height) + ", " +
         std::to_string(shape.width) + ", " + std::to_string(shape.channels) + "], window " +
         std::to_string(shape.window) + ", stride " + std::to_string(shape.stride) + ", padding " +
         std::to_string(shape.pad);
}

reference::Map map_of(const PoolShape& shape, const Values& values) {
  reference::Map map = reference::make_map(shape.n, {shape.height, shape.width, shape.channels});
  map.values = values;
  return map;
}

Shape out_shape(const PoolShape& shape) {
  return {shape.out_height(), shape.out_width(), shape.channels};
}

template <typename T>
class PoolKernels : public testing::Test {};
TYPED_TEST_SUITE(PoolKernels, ElementTypes);

// Draws few different values, so that there are many ties, in which the first of equal maxima takes
// the gradient.
template <typename T>
void expect_max_pools(const PoolShape& shape, std::int64_t offset, bool ties) {
  SCOPED_TRACE(to_string(shape) + (ties ? ", ties" : ""));
  const MaxPoolOp operation{.window = shape.window, .stride = shape.stride, .pad = shape.pad};
  const std::int64_t inputs = shape.n * shape.height * shape.width * shape.channels;
  const std::int64_t outputs = shape.n * num_elements(out_shape(shape));
  Values values = draw<T>(inputs, 1);
  if (ties) {
    for (double& value : values) value = std::round(value);
  }
  const Values gradients = draw<T>(outputs, 2);
  const reference::Map x = map_of(shape, values);
  reference::Map dy = reference::make_map(shape.n, out_shape(shape));
  dy.values = gradients;
  const auto found = run_in_every_order([&] {
    DeviceArray<T> in(values, offset);
    DeviceArray<T> out(outputs, offset);
    DeviceArray<std::uint8_t> chosen(outputs, offset);
    DeviceArray<T> out_gradient(gradients, offset);
    DeviceArray<T> in_gradient(inputs, offset);
    max_pool_forward(shape, in.data(), out.data(), chosen.data(), kStream);
    max_pool_backward(shape, out_gradient.data(), chosen.data(), in_gradient.data(), kStream);
    return Outputs{out.values(), in_gradient.values()};
  });
  EXPECT_EQ(reference::max_pool(x, operation, out_shape(shape)).values, found[0]);
  // The gradient of a pixel is a sum over at most window^2 windows.
  const double windows = shape.window * shape.window;
  expect_close<T>(reference::max_pool_backward(x, operation, dy).values, found[1], windows,
                  windows);
}

TYPED_TEST(PoolKernels, TakeTheLargestAndSendItsGradientBack) {
  for (const PoolShape& shape : kPoolShapes) {
    for (const bool ties : {false, true}) {
      expect_max_pools<TypeParam>(shape, 0, ties);
      expect_max_pools<TypeParam>(shape, 1, ties);
    }
  }
}

TYPED_TEST(PoolKernels, StoreTheFirstLargestElementOfTheWindow) {
  DeviceArray<TypeParam> x(Values{1, 5, 5, 0,  //
                                  5, 2, 7, 7});
  DeviceArray<TypeParam> y(2);
  DeviceArray<std::uint8_t> chosen(2);
  max_pool_forward({1, 2, 4, 1, 2, 2}, x.data(), y.data(), chosen.data(), kStream);
  EXPECT_EQ(y.values(), (Values{5, 7}));
  EXPECT_EQ(chosen.values(), (Values{1, 2}));
}

TYPED_TEST(PoolKernels, CountThePaddingInTheWindowsPlacesButNeverChooseIt) {
  DeviceArray<TypeParam> x(Values{-2, -5,  //
                                  -3, -4});
  DeviceArray<TypeParam> y(1);
  DeviceArray<std::uint8_t> chosen(1);
  max_pool_forward({1, 2, 2, 1, 3, 2, 1}, x.data(), y.data(), chosen.data(), kStream);
  EXPECT_EQ(y.values(), Values{-2});
  EXPECT_EQ(chosen.values(), Values{4});  // the maximum is at row 1, column 1 of 3x3
}

TYPED_TEST(PoolKernels, AverageOverWindows) {
  using T = TypeParam;
  for (const PoolShape& shape : kPoolShapes) {
    for (const std::int64_t offset : {0, 1}) {
      SCOPED_TRACE(to_string(shape));
      const AveragePoolOp operation{
          .window = shape.window, .stride = shape.stride, .pad = shape.pad};
      const std::int64_t inputs = shape.n * shape.height * shape.width * shape.channels;
      const reference::Map x = map_of(shape, draw<T>(inputs, 3));
      reference::Map dy = reference::make_map(shape.n, out_shape(shape));
      const auto outputs = static_cast<std::int64_t>(dy.values.size());
      dy.values = draw<T>(outputs, 4);
      const auto found = run_in_every_order([&] {
        DeviceArray<T> in(x.values, offset);
        DeviceArray<T> out(outputs, offset);
        DeviceArray<T> out_gradient(dy.values, offset);
        DeviceArray<T> in_gradient(inputs, offset);
        window_average_forward(shape, in.data(), out.data(), kStream);
        window_average_backward(shape, out_gradient.data(), in_gradient.data(), kStream);
        return Outputs{out.values(), in_gradient.values()};
      });
      const double pixels = shape.window * shape.window;  // at most so many numbers are added
      expect_close<T>(reference::average_pool(x, operation, out_shape(shape)).values, found[0],
                      pixels + 2);
      expect_close<T>(reference::average_pool_backward(x, operation, dy).values, found[1],
                      pixels + 2);
    }
  }
}

TYPED_TEST(PoolKernels, AverageOverPixels) {
  using T = TypeParam;
  for (const PoolShape& shape : kPoolShapes) {
    for (const std::int64_t offset : {0, 1}) {
      SCOPED_TRACE(to_string(shape));
      const int pixels = shape.height * shape.width;
      const std::int64_t outputs = shape.n * shape.channels;
      const reference::Map x = map_of(shape, draw<T>(outputs * pixels, 3));
      reference::Map dy = reference::make_map(shape.n, {shape.channels});
      dy.values = draw<T>(outputs, 4);
      const auto found = run_in_every_order([&] {
        DeviceArray<T> in(x.values, offset);
        DeviceArray<T> out(outputs, offset);
        DeviceArray<T> out_gradient(dy.values, offset);
        DeviceArray<T> in_gradient(outputs * pixels, offset);
        average_pool_forward(in.data(), out.data(), shape.n, pixels, shape.channels, kStream);
        average_pool_backward(out_gradient.data(), in_gradient.data(), shape.n, pixels,
                              shape.channels, kStream);
        return Outputs{out.values(), in_gradient.values()};
      });
      // The average is a sum of `pixels` f32 numbers up to 1 that is then divided.
      expect_close<T>(reference::global_average_pool(x).values, found[0], pixels + 1);
      expect_close<T>(reference::global_average_pool_backward(x, dy).values, found[1], 1);
    }
  }
}

// The shortcut's number of channels grows or stays, in scalar and packed maps; some sizes are no
// multiple of the stride.
constexpr ShortcutShape kShortcutShapes[] = {{2, 8, 8, 16, 2, 32}, {1, 7, 5, 3, 2, 8},
                                             {2, 4, 4, 8, 1, 8},   {3, 9, 7, 8, 2, 12},
                                             {1, 1, 1, 1, 2, 2},   {4, 10, 8, 64, 3, 264}};

TYPED_TEST(PoolKernels, ShortenAShortcutAndLengthenItsGradient) {
  using T = TypeParam;
  for (const ShortcutShape& shape : kShortcutShapes) {
    for (const std::int64_t offset : {0, 1}) {
      const ShortcutOp operation{.stride = shape.stride};
      reference::Map x = reference::make_map(shape.n, {shape.height, shape.width, shape.channels});
      x.values = draw<T>(static_cast<std::int64_t>(x.values.size()), 5);
      const Shape out{(shape.height + shape.stride - 1) / shape.stride,
                      (shape.width + shape.stride - 1) / shape.stride, shape.out_channels};
      reference::Map dy = reference::make_map(shape.n, out);
      dy.values = draw<T>(static_cast<std::int64_t>(dy.values.size()), 6);
      const auto found = run_in_every_order([&] {
        DeviceArray<T> in(x.values, offset);
        DeviceArray<T> output(static_cast<std::int64_t>(dy.values.size()), offset);
        DeviceArray<T> out_gradient(dy.values, offset);
        DeviceArray<T> in_gradient(static_cast<std::int64_t>(x.values.size()), offset);
        shortcut_forward(shape, in.data(), output.data(), kStream);
        shortcut_backward(shape, out_gradient.data(), in_gradient.data(), kStream);
        return Outputs{output.values(), in_gradient.values()};
      });
      EXPECT_EQ(reference::shortcut(x, operation, out).values, found[0]);
      EXPECT_EQ(reference::shortcut_backward(x, operation, dy).values, found[1]);
    }
  }
}

TYPED_TEST(PoolKernels, DoNothingWithoutSamples) {
  DeviceArray<TypeParam> empty(0);
  DeviceArray<std::uint8_t> chosen(0);
  const PoolShape pool{0, 6, 6, 8, 2, 2};
  max_pool_forward(pool, empty.data(), empty.data(), chosen.data(), kStream);
  max_pool_backward(pool, empty.data(), chosen.data(), empty.data(), kStream);
  average_pool_forward(empty.data(), empty.data(), 0, 36, 8, kStream);
  average_pool_backward(empty.data(), empty.data(), 0, 36, 8, kStream);
  const ShortcutShape shortcut{0, 6, 6, 8, 2, 16};
  shortcut_forward(shortcut, empty.data(), empty.data(), kStream);
  shortcut_backward(shortcut, empty.data(), empty.data(), kStream);
}

}  // namespace
}  // namespace syncopate::cuda
