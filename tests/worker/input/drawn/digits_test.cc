#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "models/base/random.h"
#include "tests/support/contains.h"
#include "tests/worker/input/packed_files.h"
#include "tests/worker/input/read_sample.h"
#include "worker/input/dataset.h"
#include "worker/input/drawn/digit_painter.h"

namespace syncopate {
namespace {

std::uint64_t checksum(const Dataset& dataset, std::int64_t count) {
  std::uint64_t sum = 0;
  Bytes sample(DigitPainter::kPixels);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t label = read_sample(dataset, i, sample);
    sum = sum * 31 + static_cast<std::uint64_t>(label) +
          hash_name({reinterpret_cast<const char*>(sample.data()), sample.size()});
  }
  return sum;
}

DataSplits open_digits_in(const std::filesystem::path& cache_dir) {
  return open_dataset("digits", {.cache_dir = cache_dir});
}

// The pixels of the digits must have the same bits on every machine, compiler and instruction set.
// When the drawing is changed on purpose, increase kVersion in digits.cc and replace these numbers
// by those that the failure prints.
TEST(Digits, AreTheSamePixelsEverywhere) {
  const DataSplits splits = open_digits_in("");
  EXPECT_EQ(checksum(*splits.train, 60000), 5047357959451203429U);
  EXPECT_EQ(checksum(*splits.test, 10000), 9612906198789045333U);
}

TEST(Digits, ReportHowFarTheirDrawingIs) {
  std::vector<std::int64_t> reported;
  open_dataset("digits", {.on_progress = [&](std::int64_t done, std::int64_t total) {
                 EXPECT_EQ(total, 70000);
                 reported.push_back(done);
               }});
  ASSERT_FALSE(reported.empty());
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_EQ(reported.back(), 70000);
}

TEST(Digits, HaveAFixedNumberAndBalancedClasses) {
  const DataSplits splits = open_digits_in("");
  ASSERT_EQ(splits.train->size(), 60000);
  ASSERT_EQ(splits.test->size(), 10000);
  Bytes sample(DigitPainter::kPixels);
  std::vector<int> per_class(10);
  double sum = 0;
  double sum_of_squares = 0;
  for (std::int64_t i = 0; i < 60000; ++i) {
    ++per_class.at(static_cast<std::size_t>(read_sample(*splits.train, i, sample)));
    for (const std::uint8_t pixel : sample) {
      sum += pixel;
      sum_of_squares += pixel * pixel;
    }
  }
  for (const int count : per_class) EXPECT_NEAR(count, 6000, 300);  // four standard deviations
  const double pixels = 60000.0 * DigitPainter::kPixels;
  const double mean = sum / pixels / 255;
  EXPECT_NEAR(splits.mean.at(0), mean, 1e-4);
  EXPECT_NEAR(splits.stddev.at(0), std::sqrt(sum_of_squares / pixels / 65025 - mean * mean), 1e-4);
}

TEST(Digits, AreReadFromTheCacheAndRenderedAgainWhenItIsDamaged) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "cache/digits-v1.u8";
  const std::uint64_t expected = checksum(*open_digits_in(folder.path() / "cache").train, 100);
  const auto written = std::filesystem::last_write_time(path);
  const auto size = std::filesystem::file_size(path);

  EXPECT_EQ(checksum(*open_digits_in(folder.path() / "cache").train, 100), expected);
  EXPECT_EQ(std::filesystem::last_write_time(path), written);

  std::filesystem::resize_file(path, size / 2);
  EXPECT_EQ(checksum(*open_digits_in(folder.path() / "cache").train, 100), expected);
  EXPECT_EQ(std::filesystem::file_size(path), size);
}

TEST(Digits, NeedNoCacheAndWarnOnce) {
  const TemporaryFolder folder;
  write_file(folder.path() / "file", Bytes{1});
  testing::internal::CaptureStderr();
  const DataSplits splits = open_digits_in(folder.path() / "file/cache");
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_EQ(splits.train->size(), 60000);
  EXPECT_TRUE(contains(warning, "the digits are drawn again in the next run"));
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
}

// Trains a softmax regression by plain SGD. On all 60,000 images a well tuned one reaches 88.2%.
TEST(Digits, AreTooHardForALinearModel) {
  constexpr std::size_t kPixels = DigitPainter::kPixels;
  constexpr std::int64_t kTrain = 10000;
  constexpr std::int64_t kTest = 2000;
  const DataSplits splits = open_digits_in("");
  std::vector<float> weights((kPixels + 1) * 10);  // [10][784 + bias]
  Bytes sample(kPixels);
  std::array<float, kPixels + 1> x{};
  std::array<float, 10> score{};
  const auto classify = [&] {
    for (std::size_t p = 0; p < kPixels; ++p) x[p] = static_cast<float>(sample[p]) / 255.0F;
    x[kPixels] = 1.0F;
    for (std::size_t k = 0; k < 10; ++k) {
      const float* w = weights.data() + k * x.size();
      score[k] = std::inner_product(x.begin(), x.end(), w, 0.0F);
    }
    return std::max_element(score.begin(), score.end()) - score.begin();
  };
  for (const float rate : {0.02F, 0.02F, 0.01F, 0.005F, 0.002F}) {
    for (std::int64_t i = 0; i < kTrain; ++i) {
      const auto label = static_cast<std::size_t>(read_sample(*splits.train, i, sample));
      const auto best = static_cast<std::size_t>(classify());
      const float highest = score[best];
      float sum = 0;
      for (float& s : score) sum += s = std::exp(s - highest);
      for (std::size_t k = 0; k < 10; ++k) {
        const float step = rate * (score[k] / sum - (k == label ? 1.0F : 0.0F));
        float* w = weights.data() + k * x.size();
        for (std::size_t p = 0; p < x.size(); ++p) w[p] -= step * x[p];
      }
    }
  }
  int correct = 0;
  for (std::int64_t i = 0; i < kTest; ++i) {
    const std::int32_t label = read_sample(*splits.test, i, sample);
    correct += classify() == label ? 1 : 0;
  }
  const double accuracy = static_cast<double>(correct) / static_cast<double>(kTest);
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_LT(accuracy, 0.93);
  EXPECT_GT(accuracy, 0.75);  // the model has learned
}

}  // namespace
}  // namespace syncopate
