// Tests the extra work of NVIDIA's products and convolutions, epilogues and sums of an output,
// twice each on memory full of NaNs. Linked for a GPU and for the emulated one, which shows that
// the test can be passed.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/precision.h"
#include "models/base/random.h"
#include "tests/models/backend/cuda/device_under_test.h"

namespace syncopate::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A Block holds elements on the device, in a type of its own.
template <typename T>
class Block {
 public:
  explicit Block(const std::vector<float>& values)
      : size_(values.size()), memory_(make_device_buffer(size_ * sizeof(T), 0)) {
    std::vector<T> elements;
    for (const float value : values) elements.push_back(T(value));
    copy_to_device(memory_->data(), std::as_bytes(std::span(elements)));
  }
  T* data() const { return reinterpret_cast<T*>(memory_->data()); }
  // Returns the current elements. The caller has waited for the stream that wrote them.
  std::vector<double> values() const {
    std::vector<T> elements(size_);
    EXPECT_EQ(cudaMemcpy(elements.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    std::vector<double> values;
    for (const T element : elements) values.push_back(static_cast<double>(float(element)));
    return values;
  }

 private:
  std::size_t size_;
  std::shared_ptr<Buffer> memory_;
};

// Draws numbers around `mean` that have few enough bits to be exact in every type.
std::vector<float> numbers(std::int64_t count, float mean, std::uint64_t seed) {
  const RandomStream random(seed, 0);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto eighth = static_cast<float>(random.below(static_cast<std::uint64_t>(i), 17)) - 8.0F;
    values.push_back(mean + eighth / 8.0F);
  }
  return values;
}

class Operation : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_device()) GTEST_SKIP() << *reason;
    use_device(0);
    stream_ = make_stream();
    operations_ = operations_under_test()(stream_.get());
  }
  void wait() const { ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess); }
  static std::shared_ptr<Buffer> workspace(std::size_t bytes) {
    return make_device_buffer(bytes, 0);
  }

  Stream stream_;
  std::unique_ptr<Operations> operations_;
};

// The matrix is shaped like the gradient of a dense layer: its `samples` rows sum to the bias's
// gradient.
TEST_P(Operation, OfAProductSumsTheRowsOfItsFirstFactor) {
  constexpr std::int64_t kSamples = 2048;
  constexpr std::int64_t kIn = 24;
  for (const std::int64_t out : {16, 10}) {
    with_type(GetParam(), [&]<typename T>() {
      const auto product = operations_->product({.m = out,
                                                 .n = kIn,
                                                 .k = kSamples,
                                                 .transpose_a = true,
                                                 .type = GetParam(),
                                                 .result_type = Precision::kF32,
                                                 .epilogue = Epilogue::kRowSums},
                                                {});
      const std::vector<float> gradients = numbers(kSamples * out, 0.25F, 1);
      const Block<T> dy(gradients);
      const Block<T> x(numbers(kSamples * kIn, 0.0F, 2));
      const Block<float> dw(std::vector<float>(static_cast<std::size_t>(out * kIn), kNaN));
      const Block<float> db(std::vector<float>(static_cast<std::size_t>(out), kNaN));
      const auto scratch = workspace(product->workspace_bytes());
      std::vector<double> expected(static_cast<std::size_t>(out), 0.0);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        expected[i % static_cast<std::size_t>(out)] += static_cast<double>(gradients[i]);
      }
      for (int run = 0; run < 2; ++run) {
        product->run({.a = dy.data(),
                      .b = x.data(),
                      .c = dw.data(),
                      .row_sums = db.data(),
                      .workspace = scratch->data()});
        wait();
        const std::vector<double> found = db.values();
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_NEAR(found[i], expected[i], 1e-3 * kSamples) << "run " << run << ", row " << i;
        }
        for (const double value : dw.values()) EXPECT_TRUE(std::isfinite(value));
      }
    });
  }
}

TEST_P(Operation, OfAProductAddsABiasAndLetsANaNPass) {
  constexpr std::int64_t kRows = 8;
  constexpr std::int64_t kOut = 16;
  constexpr std::int64_t kIn = 32;
  with_type(GetParam(), [&]<typename T>() {
    const auto product = operations_->product({.m = kRows,
                                               .n = kOut,
                                               .k = kIn,
                                               .transpose_b = true,
                                               .type = GetParam(),
                                               .result_type = GetParam(),
                                               .epilogue = Epilogue::kBias},
                                              {});
    std::vector<float> inputs = numbers(kRows * kIn, 0.0F, 3);
    inputs[0] = kNaN;  // is an input of the first row
    const std::vector<float> weights = numbers(kOut * kIn, 0.0F, 4);
    const std::vector<float> biases = numbers(kOut, 2.0F, 5);
    const Block<T> x(inputs);
    const Block<T> w(weights);
    const Block<T> bias(biases);
    const Block<T> y(std::vector<float>(static_cast<std::size_t>(kRows * kOut), kNaN));
    const auto scratch = workspace(product->workspace_bytes());
    product->run({.a = x.data(),
                  .b = w.data(),
                  .c = y.data(),
                  .bias = bias.data(),
                  .workspace = scratch->data()});
    wait();
    const std::vector<double> found = y.values();
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t j = 0; j < kOut; ++j) {
        double expected = static_cast<double>(biases[static_cast<std::size_t>(j)]);
        for (std::int64_t l = 0; l < kIn; ++l) {
          expected += static_cast<double>(inputs[static_cast<std::size_t>(row * kIn + l)]) *
                      static_cast<double>(weights[static_cast<std::size_t>(j * kIn + l)]);
        }
        const double value = found[static_cast<std::size_t>(row * kOut + j)];
        if (row == 0) {
          EXPECT_TRUE(std::isnan(value));
        } else {
          EXPECT_NEAR(value, expected, 2e-2 * std::abs(expected) + 2e-2);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Each, Operation,
                         testing::Values(Precision::kF32, Precision::kBf16, Precision::kF16),
                         [](const auto& one) { return std::string(name(one.param)); });

class ConvolutionWithSums : public Operation {};

TEST_P(ConvolutionWithSums, SumsWhatItStores) {
  const ConvShape shape{
      .n = 4, .height = 9, .width = 7, .channels = 16, .out_channels = 24, .type = GetParam()};
  with_type(GetParam(), [&]<typename T>() {
    const auto convolution = operations_->convolution(ConvPass::kForwardWithSums, shape, {});
    ASSERT_NE(convolution, nullptr);
    const auto channels = static_cast<std::size_t>(shape.out_channels);
    const std::int64_t rows = shape.n * shape.out_height() * shape.out_width();
    const Block<T> x(numbers(shape.n * shape.height * shape.width * shape.channels, 0.5F, 6));
    const Block<T> w(numbers(shape.out_channels * 9 * shape.channels, 0.0F, 7));
    const Block<T> y(std::vector<float>(static_cast<std::size_t>(rows) * channels, kNaN));
    const Block<float> sums(std::vector<float>(channels, kNaN));
    const Block<float> squares(std::vector<float>(channels, kNaN));
    const auto scratch = workspace(convolution->workspace_bytes());
    for (int run = 0; run < 2; ++run) {  // sums of run 0 are in memory at run 1
      convolution->run({.x = x.data(),
                        .w = w.data(),
                        .y = y.data(),
                        .sums = sums.data(),
                        .squares = squares.data(),
                        .workspace = scratch->data()});
      wait();
      std::vector<double> sum(channels, 0.0);
      std::vector<double> square(channels, 0.0);
      const std::vector<double> stored = y.values();
      for (std::size_t i = 0; i < stored.size(); ++i) {
        sum[i % channels] += stored[i];
        square[i % channels] += stored[i] * stored[i];
      }
      for (std::size_t c = 0; c < channels; ++c) {
        // The engine may sum a convolution's values before they are stored, so each term may differ
        // by a rounding.
        const double rounding = 0x1p-11 * std::sqrt(square[c] * static_cast<double>(rows));
        EXPECT_NEAR(sums.values()[c], sum[c], rounding) << "run " << run << ", channel " << c;
        EXPECT_NEAR(squares.values()[c], square[c], 0x1p-10 * square[c]) << "run " << run;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Fp16, ConvolutionWithSums, testing::Values(Precision::kF16));

}  // namespace
}  // namespace syncopate::cuda
