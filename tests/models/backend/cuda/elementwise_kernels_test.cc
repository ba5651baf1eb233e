// Tests the kernels for samples, conversions, ReLU and addition.
#include <cmath>

#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "tests/models/backend/cuda/device_array.h"
#include "tests/models/backend/cuda/kernel_case.h"

namespace syncopate::cuda {
namespace {

constexpr cudaStream_t kStream = nullptr;

// The numbers of elements: none, less than a pack, packs with and without a rest, several blocks.
constexpr std::int64_t kCounts[] = {0, 1, 7, 8, 100, 5003};
// An offset of one element leaves no array aligned to 16 bytes.
constexpr std::int64_t kOffsets[] = {0, 1};

template <typename T>
class ElementwiseKernels : public testing::Test {
 protected:
  // Calls body(count, offset) for every pair of an element count and an offset.
  template <typename Body>
  void for_each_case(const Body& body) {
    for (const std::int64_t count : kCounts) {
      for (const std::int64_t offset : kOffsets) {
        SCOPED_TRACE(std::to_string(count) + " elements, off by " + std::to_string(offset));
        body(count, offset);
      }
    }
  }
};
TYPED_TEST_SUITE(ElementwiseKernels, ElementTypes);

TYPED_TEST(ElementwiseKernels, NormaliseSamples) {
  using T = TypeParam;
  for (const int channels : {1, 3}) {
    const Values mean = draw<float>(channels, 1, 0.4, 0.1);
    const Values stddev = draw<float>(channels, 2, 0.3, 0.1);
    this->for_each_case([&](std::int64_t count, std::int64_t offset) {
      Values pixels;
      Values expected;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto c = static_cast<std::size_t>(i % channels);
        pixels.push_back(static_cast<double>(i * 7 % 256));
        expected.push_back((pixels.back() / 255.0 - mean[c]) / stddev[c]);
      }
      const auto found = run_in_every_order([&] {
        DeviceArray<std::uint8_t> x(pixels, offset);
        DeviceArray<float> means(mean);
        DeviceArray<float> stddevs(stddev);
        DeviceArray<T> y(count, offset);
        normalise(x.data(), 255.0F, means.data(), stddevs.data(), y.data(), count, channels,
                  kStream);
        return Outputs{y.values()};
      });
      // Normalising a sample takes three operations, each of which rounds a number up to 1 / 0.2.
      expect_close<T>(expected, found[0], 4, 5.0);
    });
  }
}

template <typename From, typename To>
void expect_converts(std::int64_t count, std::int64_t offset) {
  const Values values = draw<From>(count, 3, 0.0, 100.0);
  const auto found = run_in_every_order([&] {
    DeviceArray<From> x(values, offset);
    DeviceArray<To> y(count, offset);
    convert(x.data(), y.data(), count, kStream);
    return Outputs{y.values()};
  });
  DeviceArray<To> expected(values);
  expect_same_bits({expected.values()}, found);
}

TYPED_TEST(ElementwiseKernels, ConvertRoundingOnce) {
  this->for_each_case([&](std::int64_t count, std::int64_t offset) {
    expect_converts<TypeParam, float>(count, offset);
    expect_converts<TypeParam, __nv_bfloat16>(count, offset);
    expect_converts<TypeParam, __half>(count, offset);
  });
}

TEST(ConvertKernel, RoundsToNearestEven) {
  // 257 and 259 lie halfway between two numbers of bf16, which has 8 bits.
  DeviceArray<float> x(Values{257.0, 259.0, -257.0, 257.5});
  DeviceArray<__nv_bfloat16> y(4);
  convert(x.data(), y.data(), 4, kStream);
  EXPECT_EQ(y.values(), (Values{256.0, 260.0, -256.0, 258.0}));
}

TYPED_TEST(ElementwiseKernels, ReluKeepsWhatIsPositive) {
  using T = TypeParam;
  this->for_each_case([&](std::int64_t count, std::int64_t offset) {
    const Values values = draw<T>(count, 4);
    Values expected = values;
    for (double& value : expected) value = std::max(value, 0.0);
    const auto found = run_in_every_order([&] {
      DeviceArray<T> x(values, offset);
      DeviceArray<T> y(count, offset);
      relu_forward(x.data(), y.data(), count, kStream);
      return Outputs{y.values()};
    });
    expect_same_bits({expected}, found);
  });
}

TYPED_TEST(ElementwiseKernels, ReluHidesNoNaN) {
  DeviceArray<TypeParam> x(Values{NAN, -1.0});
  DeviceArray<TypeParam> y(2);
  relu_forward(x.data(), y.data(), 2, kStream);
  EXPECT_TRUE(std::isnan(y.values()[0]));
}

TYPED_TEST(ElementwiseKernels, ReluPassesGradientsWhereTheOutputIsPositive) {
  using T = TypeParam;
  this->for_each_case([&](std::int64_t count, std::int64_t offset) {
    Values outputs = draw<T>(count, 5);
    for (double& value : outputs) value = std::max(value, 0.0);  // a zero output passes no gradient
    const Values gradients = draw<T>(count, 6);
    Values expected = gradients;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (outputs[i] == 0.0) expected[i] = 0.0;
    }
    for (const bool in_place : {false, true}) {
      const auto found = run_in_every_order([&] {
        DeviceArray<T> y(outputs, offset);
        DeviceArray<T> dy(gradients, offset);
        DeviceArray<T> other(count, offset);
        DeviceArray<T>& dx = in_place ? dy : other;
        relu_backward(y.data(), dy.data(), dx.data(), count, kStream);
        return Outputs{dx.values()};
      });
      expect_same_bits({expected}, found);
    }
  });
}

TYPED_TEST(ElementwiseKernels, ActivateAndMultiplyTheGradientByTheSlope) {
  using T = TypeParam;
  for (const Activation kind :
       {Activation::kSigmoid, Activation::kTanh, Activation::kGelu, Activation::kSilu,
        Activation::kHardSwish, Activation::kRelu6, Activation::kHardSigmoid,
        Activation::kLeakyRelu, Activation::kClip, Activation::kLinear}) {
    SCOPED_TRACE(std::string(name(ActivationOp{.kind = kind})));
    const ActivationOp op{
        .kind = kind, .slope = 0.25F, .low = -1.0F, .high = 2.0F, .factor = -0.5F, .offset = 1.5F};
    this->for_each_case([&](std::int64_t count, std::int64_t offset) {
      reference::Map x = reference::make_map(1, {count});
      x.values = draw<T>(count, 9, 0.0, 5.0);
      reference::Map dy = x;
      dy.values = draw<T>(count, 10);
      const auto found = run_in_every_order([&] {
        DeviceArray<T> in(x.values, offset);
        DeviceArray<T> gradient(dy.values, offset);
        DeviceArray<T> out(count, offset);
        DeviceArray<T> in_gradient(count, offset);
        activate_forward(op, in.data(), out.data(), count, kStream);
        activate_backward(op, in.data(), gradient.data(), in_gradient.data(), count, kStream);
        return Outputs{out.values(), in_gradient.values()};
      });
      // A dozen operations, whose numbers are at most 5.
      expect_close<T>(reference::activate(x, op).values, found[0], 12, 5.0);
      expect_close<T>(reference::activate_backward(x, op, dy).values, found[1], 12, 5.0);
    });
  }
}

TYPED_TEST(ElementwiseKernels, MultiplyInF32AndRoundOnce) {
  using T = TypeParam;
  this->for_each_case([&](std::int64_t count, std::int64_t offset) {
    const Values left = draw<T>(count, 11);
    const Values right = draw<T>(count, 12);
    Values expected = left;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= right[i];
    const auto found = run_in_every_order([&] {
      DeviceArray<T> a(left, offset);
      DeviceArray<T> b(right, offset);
      DeviceArray<T> y(count, offset);
      multiply(a.data(), b.data(), y.data(), count, kStream);
      return Outputs{y.values()};
    });
    expect_close<T>(expected, found[0], 1);
  });
}

TYPED_TEST(ElementwiseKernels, AddInF32AndRoundOnce) {
  using T = TypeParam;
  this->for_each_case([&](std::int64_t count, std::int64_t offset) {
    const Values left = draw<T>(count, 7);
    const Values right = draw<T>(count, 8, 0.0, 0.01);
    Values expected = left;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += right[i];
    for (const bool in_place : {false, true}) {
      const auto found = run_in_every_order([&] {
        DeviceArray<T> a(left, offset);
        DeviceArray<T> b(right, offset);
        DeviceArray<T> other(count, offset);
        DeviceArray<T>& y = in_place ? b : other;
        add(a.data(), b.data(), y.data(), count, kStream);
        return Outputs{y.values()};
      });
      expect_close<T>(expected, found[0], 1);
    }
  });
}

}  // namespace
}  // namespace syncopate::cuda
