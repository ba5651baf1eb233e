// Tests the kernels that add channels to maps and remove channels from maps.
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

template <typename T>
class ChannelKernels : public testing::Test {};
TYPED_TEST_SUITE(ChannelKernels, ElementTypes);

struct Case {
  std::int64_t rows;
  int channels, y_channels;
};
// The numbers of rows are zero, one, and enough for more elements than a grid has threads. Rows of
// four and eight channels are written at once, other rows element by element.
constexpr Case kCases[] = {{0, 3, 4}, {1, 1, 4}, {5, 3, 8}, {250'000, 3, 5},
                           {7, 8, 3}, {7, 8, 4}, {6, 4, 1}};

// Returns element `i` of the map after its number of channels was changed to y_channels: added
// channels are zero, and surplus channels are left out.
double at(const Values& x, int channels, std::int64_t i, int y_channels) {
  const std::int64_t channel = i % y_channels;
  if (channel >= channels) return 0.0;
  return x[static_cast<std::size_t>(i / y_channels * channels + channel)];
}

TYPED_TEST(ChannelKernels, AddZerosOrLeaveTheLastOnesOut) {
  using T = TypeParam;
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::to_string(c.rows) + " rows");
    const Values x = draw<T>(c.rows * c.channels, 1);
    Values expected;
    for (std::int64_t i = 0; i < c.rows * c.y_channels; ++i) {
      expected.push_back(at(x, c.channels, i, c.y_channels));
    }
    const auto found = run_in_every_order([&] {
      DeviceArray<T> from(x);
      DeviceArray<T> same(c.rows * c.y_channels);
      DeviceArray<float> wide(c.rows * c.y_channels);
      with_channels(from.data(), c.channels, same.data(), c.y_channels, c.rows, kStream);
      with_channels(from.data(), c.channels, wide.data(), c.y_channels, c.rows, kStream);
      return Outputs{same.values(), wide.values()};
    });
    EXPECT_EQ(found[0], expected);
    EXPECT_EQ(found[1], expected);
  }
}

TYPED_TEST(ChannelKernels, AddABorderOfZerosOrRemoveOne) {
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

TYPED_TEST(ChannelKernels, NormaliseLikeUnpaddedChannels) {
  using T = TypeParam;
  constexpr std::int64_t kRows = 700;
  constexpr int kChannels = 3;
  Values pixels;
  for (std::int64_t i = 0; i < kRows * kChannels; ++i) {
    pixels.push_back(static_cast<double>(i * 37 % 256));
  }
  DeviceArray<std::uint8_t> x(pixels);
  DeviceArray<float> mean(Values{0.4, 0.5, 0.6});
  DeviceArray<float> stddev(Values{0.2, 0.3, 0.25});
  DeviceArray<T> plain(kRows * kChannels);
  normalise(x.data(), 255.0F, mean.data(), stddev.data(), plain.data(), plain.size(), kChannels,
            kStream);
  for (const int y_channels : {4, 5, 8}) {
    Values expected;
    for (std::int64_t i = 0; i < kRows * y_channels; ++i) {
      expected.push_back(at(plain.values(), kChannels, i, y_channels));
    }
    for (const std::int64_t offset : {0, 1}) {
      DeviceArray<T> padded(kRows * y_channels, offset);
      normalise_with_channels(x.data(), 255.0F, mean.data(), stddev.data(), kChannels,
                              padded.data(), y_channels, kRows, kStream);
      EXPECT_EQ(padded.values(), expected);
    }
  }
}

}  // namespace
}  // namespace syncopate::cuda
