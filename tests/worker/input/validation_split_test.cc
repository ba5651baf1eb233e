#include "worker/input/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "models/base/errors.h"
#include "tests/worker/input/counting_dataset.h"
#include "tests/worker/input/read_sample.h"

namespace syncopate {
namespace {

DataSplits counting(std::int64_t size) {
  return {.name = "counting",
          .train = std::make_unique<CountingDataset>(size),
          .test = std::make_unique<CountingDataset>(3)};
}

std::vector<std::int32_t> labels(const Dataset& dataset) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < dataset.size(); ++i) all.push_back(dataset.label(i));
  return all;
}

DataSplits split(std::int64_t size, const std::string& text, std::uint64_t seed = 1) {
  DataSplits data = counting(size);
  split_validation(data, text, seed);
  return data;
}

TEST(AValidationSplit, TakesEachTrainingSampleOnce) {
  const DataSplits data = split(100, "val=0.1");
  EXPECT_EQ(data.train->size(), 90);
  EXPECT_EQ(data.validation->size(), 10);
  EXPECT_EQ(data.test->size(), 3);
  std::set<std::int32_t> all;
  for (const Dataset* part : {data.train.get(), data.validation.get()}) {
    const auto of_part = labels(*part);
    EXPECT_TRUE(std::ranges::is_sorted(of_part)) << "the order of the data set";
    all.insert(of_part.begin(), of_part.end());
  }
  EXPECT_EQ(all.size(), 100U);
}

TEST(AValidationSplit, ReadsTheSampleWhoseLabelItGives) {
  const DataSplits data = split(20, "val=0.25");
  std::vector<std::uint8_t> pixels(6);
  for (std::int64_t i = 0; i < data.validation->size(); ++i) {
    const std::int32_t label = data.validation->label(i);
    EXPECT_EQ(read_sample(*data.validation, i, pixels), label);
    EXPECT_EQ(pixels[1], label + 1);
    EXPECT_EQ(data.validation->fingerprint(i), static_cast<std::uint64_t>(label));
  }
}

TEST(AValidationSplit, IsAFunctionOfTheSeed) {
  EXPECT_EQ(labels(*split(50, "val=0.2", 7).validation),
            labels(*split(50, "val=0.2", 7).validation));
  EXPECT_NE(labels(*split(50, "val=0.2", 7).validation),
            labels(*split(50, "val=0.2", 8).validation));
}

TEST(AValidationSplit, IsRefusedWhenAPartWouldBeEmpty) {
  EXPECT_THROW(split(4, "val=0.1"), UsageError);
  EXPECT_THROW(split(4, "val=0.9"), UsageError);
  EXPECT_EQ(split(2, "val=0.5").validation->size(), 1);
}

TEST(AValidationSplit, IsRefusedForDataThatHaveOne) {
  DataSplits data = split(10, "val=0.5");
  EXPECT_THROW(split_validation(data, "val=0.5", 1), UsageError);
}

TEST(AValidationSplit, IsAFraction) {
  EXPECT_EQ(parse_split("val=0.125"), 0.125);
  for (const char* wrong : {"", "0.1", "val", "val=", "val=0", "val=1", "val=-0.1", "val=0.1x",
                            "val=nan", "test=0.1"}) {
    EXPECT_THROW(parse_split(wrong), UsageError) << wrong;
  }
}

}  // namespace
}  // namespace syncopate
