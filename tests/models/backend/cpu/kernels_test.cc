// Compares the kernels of different instruction sets. Their numbers of channels per block differ;
// their results may differ by rounding only.
#include "models/backend/cpu/kernels/cpu_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/base/isa.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

std::vector<Isa> runnable() {
  std::vector<Isa> all = {Isa::kV2, Isa::kV3, Isa::kV4};
  std::erase_if(all, [](Isa isa) { return isa > detect_isa(); });
  return all;
}

std::vector<float> noise(std::size_t count, std::uint64_t stream, float offset = 0.0F) {
  const RandomStream random(3, stream);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.uniform(i) - 0.5F + offset;
  return values;
}

// Returns the relative L2 distance of a from b.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

TEST(BatchNormStatistics, KeepTheVarianceOfAMapWithALargeMean) {
  // The variance must not be lost in rounding, as a variance of 1/12 around a mean of 1,000 would
  // be with f32 sums of squares.
  for (const Isa isa : runnable()) {
    const CpuKernels& kernels = cpu_kernels(isa);
    const auto block = static_cast<std::size_t>(kernels.block);
    const BlockedShape shape = {.n = 3, .blocks = 1, .pixels = 700};
    const std::vector<float> x = noise(3 * 700 * block, 1, 1000.0F);
    std::vector<double> sums(2 * block);
    kernels.batch_norm_statistics(x.data(), shape, sums.data());
    const double count = 3 * 700;
    for (std::size_t c = 0; c < block; ++c) {
      double mean = 0.0;
      for (std::size_t i = c; i < x.size(); i += block) mean += x[i] / count;
      double variance = 0.0;
      for (std::size_t i = c; i < x.size(); i += block)
        variance += (x[i] - mean) * (x[i] - mean) / count;
      const double found_mean = sums[c] / count;
      EXPECT_NEAR(found_mean, mean, 1e-6 * mean);
      EXPECT_NEAR(sums[block + c] / count - found_mean * found_mean, variance, 1e-5 * variance);
    }
  }
}

TEST(ConvPoolKernels, AgreeBetweenInstructionSets) {
  for (const int channels : {1, 2, 3}) {
    ConvPoolShape shape = {.n = 3,
                           .in_h = 11,
                           .in_w = 14,
                           .in_channels = channels,
                           .out_channels = 20,
                           .pooled_h = 4,
                           .pooled_w = 6,
                           .channels_last = true};
    const auto in = static_cast<std::size_t>(shape.n * shape.in_h * shape.in_w * channels);
    const auto weights = 20 * 9 * static_cast<std::size_t>(channels);
    const std::size_t out = 3 * 4 * 6 * 20;
    const std::vector<float> x = noise(in, 1);
    const std::vector<float> weight = noise(weights, 2);
    const std::vector<float> bias = noise(20, 3);
    const std::vector<float> dy = noise(out, 4);
    std::vector<std::vector<float>> outputs;
    std::vector<std::vector<float>> gradients;
    for (const Isa isa : runnable()) {
      const CpuKernels& kernels = cpu_kernels(isa);
      std::vector<float> packed(9 * static_cast<std::size_t>(channels) * 32);
      std::vector<float> y(out);
      std::vector<std::uint8_t> winner(3 * 4 * 6 * 32);
      kernels.conv_pool_pack(weight.data(), packed.data(), shape);
      kernels.conv_pool(x.data(), packed.data(), bias.data(), y.data(), winner.data(), shape);
      std::vector<float> gradient(weights + 20);
      kernels.conv_pool_backward(x.data(), dy.data(), winner.data(), gradient.data(),
                                 gradient.data() + weights, packed.data(), shape);
      outputs.push_back(y);
      gradients.push_back(gradient);
    }
    for (std::size_t i = 1; i < outputs.size(); ++i) {
      // The tolerance of 1e-6 covers rounding: some instruction sets fuse a product and a sum,
      // others do not.
      EXPECT_LE(distance(outputs[i], outputs[0]), 1e-6);
      EXPECT_LE(distance(gradients[i], gradients[0]), 1e-6);
    }
  }
}

TEST(ReluKernels, KeepNaN) {
  for (const Isa isa : runnable()) {
    std::vector<float> x(40, -1.0F);
    x[3] = std::nanf("");
    x[39] = std::nanf("");
    cpu_kernels(isa).relu(x.data(), x.data(), 40);
    EXPECT_TRUE(std::isnan(x[3]) && std::isnan(x[39]));
    EXPECT_EQ(x[4], 0.0F);
  }
}

TEST(MaxPoolKernels, GiveTheGradientToTheFirstOfEqualMaxima) {
  for (const Isa isa : runnable()) {
    const CpuKernels& kernels = cpu_kernels(isa);
    const auto block = static_cast<std::size_t>(kernels.block);
    const PoolShape shape = {.n = 1,
                             .blocks = 1,
                             .in_h = 2,
                             .in_w = 2,
                             .out_h = 1,
                             .out_w = 1,
                             .window = 2,
                             .stride = 2};
    const std::vector<float> x(4 * block, 5.0F);
    std::vector<float> y(block);
    std::vector<std::uint8_t> winner(block);
    kernels.max_pool(x.data(), y.data(), winner.data(), shape);
    const std::vector<float> dy(block, 2.0F);
    std::vector<float> dx(4 * block, -1.0F);
    kernels.max_pool_backward(dy.data(), winner.data(), dx.data(), shape);
    for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_EQ(dx[i], i < block ? 2.0F : 0.0F);
  }
}

TEST(MaxPoolKernels, CountPaddingInPositionsButNeverSelectIt) {
  for (const Isa isa : runnable()) {
    const CpuKernels& kernels = cpu_kernels(isa);
    const auto block = static_cast<std::size_t>(kernels.block);
    const PoolShape shape = {.n = 1,
                             .blocks = 1,
                             .in_h = 1,
                             .in_w = 2,
                             .out_h = 1,
                             .out_w = 1,
                             .window = 3,
                             .stride = 2,
                             .pad = 1};
    std::vector<float> x(2 * block, -2.0F);
    std::fill(x.begin() + kernels.block, x.end(), -5.0F);
    std::vector<float> y(block);
    std::vector<std::uint8_t> winner(block);
    kernels.max_pool(x.data(), y.data(), winner.data(), shape);
    EXPECT_EQ(y, std::vector<float>(block, -2.0F));
    EXPECT_EQ(winner, std::vector<std::uint8_t>(block, 4));  // maximum in row 1, column 1 of 3x3
  }
}

}  // namespace
}  // namespace syncopate
