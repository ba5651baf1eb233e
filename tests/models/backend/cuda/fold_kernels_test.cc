// Tests the kernels that fold maps and add borders to them.
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

template <typename T>
class FoldKernels : public testing::Test {};
TYPED_TEST_SUITE(FoldKernels, ElementTypes);
template <typename T>
class BorderKernels : public testing::Test {};
TYPED_TEST_SUITE(BorderKernels, ElementTypes);

// No map; channels added to one pixel and to more elements than a grid has threads; blocks with
// zeros on all sides; an odd map; the weights of a 7x7 convolution. Packs of eight, four and one.
constexpr FoldShape kShapes[] = {
    {.n = 0, .height = 4, .width = 4, .channels = 3, .y_height = 4, .y_width = 4, .y_channels = 4},
    {.n = 1, .height = 1, .width = 1, .channels = 1, .y_height = 1, .y_width = 1, .y_channels = 4},
    {.n = 5, .height = 1, .width = 2, .channels = 3, .y_height = 1, .y_width = 2, .y_channels = 8},
    {.n = 2,
     .height = 250,
     .width = 500,
     .channels = 3,
     .y_height = 250,
     .y_width = 500,
     .y_channels = 5},
    {.n = 2,
     .height = 6,
     .width = 4,
     .channels = 3,
     .block = 2,
     .top = 4,
     .left = 2,
     .y_height = 7,
     .y_width = 4,
     .y_channels = 16},
    {.n = 3,
     .height = 5,
     .width = 7,
     .channels = 1,
     .block = 2,
     .y_height = 3,
     .y_width = 4,
     .y_channels = 4},
    {.n = 4,
     .height = 7,
     .width = 7,
     .channels = 3,
     .block = 2,
     .top = 1,
     .left = 1,
     .y_height = 4,
     .y_width = 4,
     .y_channels = 16},
};

std::int64_t x_size(const FoldShape& s) { return s.n * s.height * s.width * s.channels; }
std::int64_t y_size(const FoldShape& s) { return s.n * s.y_height * s.y_width * s.y_channels; }

// Returns the folded map, made element by element of x.
Values folded(const FoldShape& s, const Values& x) {
  Values y(static_cast<std::size_t>(y_size(s)), 0.0);
  for (std::int64_t i = 0; i < x_size(s); ++i) {
    const std::int64_t c = i % s.channels;
    const std::int64_t w = i / s.channels % s.width + s.left;
    const std::int64_t h = i / s.channels / s.width % s.height + s.top;
    const std::int64_t n = i / s.channels / s.width / s.height;
    const std::int64_t pixel = (n * s.y_height + h / s.block) * s.y_width + w / s.block;
    const std::int64_t place = h % s.block * s.block + w % s.block;
    y[static_cast<std::size_t>(pixel * s.y_channels + place * s.channels + c)] =
        x[static_cast<std::size_t>(i)];
  }
  return y;
}

TYPED_TEST(FoldKernels, FoldMapsAndUnfoldThem) {
  using T = TypeParam;
  for (const FoldShape& shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.height) + " rows, " + std::to_string(shape.n) + " maps");
    const Values x = draw<T>(x_size(shape), 1);
    for (const std::int64_t offset : {0, 1}) {
      const auto found = run_in_every_order([&] {
        DeviceArray<T> from(x);
        DeviceArray<T> y(y_size(shape), offset);
        DeviceArray<float> back(x_size(shape));
        fold(shape, from.data(), y.data(), kStream);
        unfold(shape, y.data(), back.data(), kStream);
        return Outputs{y.values(), back.values()};
      });
      EXPECT_EQ(found[0], folded(shape, x));
      EXPECT_EQ(found[1], x);
    }
  }
}

TYPED_TEST(BorderKernels, AddABorderOfZerosOrRemoveOne) {
  using T = TypeParam;
  for (const int channels : {3, 16}) {
    const BorderShape outward{.n = 2,
                              .height = 3,
                              .width = 4,
                              .channels = channels,
                              .y_height = 6,
                              .y_width = 5,
                              .top = 2,
                              .left = 1};
    const BorderShape inward{.n = 2,
                             .height = 6,
                             .width = 5,
                             .channels = channels,
                             .y_height = 3,
                             .y_width = 4,
                             .top = -2,
                             .left = -1};
    const Values x = draw<T>(outward.n * outward.height * outward.width * channels, 1);
    Values expected(static_cast<std::size_t>(outward.n * 6 * 5 * channels), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto c = static_cast<std::size_t>(channels);
      const std::size_t w = i / c % 4;
      const std::size_t h = i / c / 4 % 3;
      const std::size_t n = i / c / 12;
      expected[((n * 6 + h + 2) * 5 + w + 1) * c + i % c] = x[i];
    }
    const auto found = run_in_every_order([&] {
      DeviceArray<T> from(x);
      DeviceArray<T> wide(static_cast<std::int64_t>(expected.size()));
      DeviceArray<T> back(static_cast<std::int64_t>(x.size()));
      with_border(outward, from.data(), wide.data(), kStream);
      with_border(inward, wide.data(), back.data(), kStream);
      return Outputs{wide.values(), back.values()};
    });
    EXPECT_EQ(found[0], expected);
    EXPECT_EQ(found[1], x);
  }
}

// Normalised samples are zero outside the map, as the padding of a convolution is.
TYPED_TEST(FoldKernels, NormaliseLikeUnfoldedSamples) {
  using T = TypeParam;
  for (const FoldShape& shape : kShapes) {
    if (shape.channels != 3) continue;
    Values pixels;
    for (std::int64_t i = 0; i < x_size(shape); ++i) {
      pixels.push_back(static_cast<double>(i * 37 % 256));
    }
    DeviceArray<std::uint8_t> x(pixels);
    DeviceArray<float> mean(Values{0.4, 0.5, 0.6});
    DeviceArray<float> stddev(Values{0.2, 0.3, 0.25});
    DeviceArray<T> plain(x_size(shape));
    normalise(x.data(), 255.0F, mean.data(), stddev.data(), plain.data(), plain.size(), 3, kStream);
    DeviceArray<T> y(y_size(shape));
    fold_normalised(shape, x.data(), 255.0F, mean.data(), stddev.data(), y.data(), kStream);
    EXPECT_EQ(y.values(), folded(shape, plain.values()));
  }
}

}  // namespace
}  // namespace syncopate::cuda
