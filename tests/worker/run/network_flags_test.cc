// Tests of --head and --normalize as text.
#include "worker/run/network_flags.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/npy_bytes.h"
#include "worker/input/dataset.h"
#include "worker/run/run_data.h"

namespace syncopate {
namespace {

TEST(HeadFlag, IsAListOfDenseLayers) {
  EXPECT_EQ(parse_head(""), std::vector<int>{});
  EXPECT_EQ(parse_head("dense:1016"), std::vector<int>{1016});
  EXPECT_EQ(parse_head("dense:1016,dense:64"), (std::vector<int>{1016, 64}));
}

TEST(HeadFlag, IsRefusedInOtherForms) {
  for (const char* text : {"1016", "dense", "dense:", "dense:0", "dense:-1", "dense:1016 ",
                           "conv:3", "dense:1e9", "dense:99999999999", ","}) {
    EXPECT_THROW(parse_head(text), UsageError) << text;
  }
}

TEST(ANetworkForData, IsRefusedIfItsCheckpointsCouldNotBeRead) {
  const TemporaryFolder folder;
  for (const std::string split : {"train", "test"}) {
    const auto x = npy_bytes("|u1", "(2, 70000, 1)", std::vector<std::uint8_t>(140000));
    const auto y = npy_bytes("<i8", "(2,)", bytes_of(std::vector<std::int64_t>{0, 1}));
    for (const auto& [name, bytes] : {std::pair("x_", x), std::pair("y_", y)}) {
      std::ofstream(folder.path() / (name + split + ".npy"), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
  }
  const std::string data = "npy:" + folder.path().string();
  EXPECT_TRUE(contains(message_of<UsageError>([&] {
                         (void)network_for_data("mlp", data, open_dataset(data, {}), {});
                       }),
                       "is beyond what a checkpoint can hold: "));
}

TEST(NormalizeFlag, HasTheNumbersOfImageNet) {
  const Normalization chosen = choose_normalization("imagenet", {{0.0F}, {1.0F}}, 3);
  EXPECT_EQ(chosen.mean, (std::vector<float>{0.485F, 0.456F, 0.406F}));
  EXPECT_EQ(chosen.stddev, (std::vector<float>{0.229F, 0.224F, 0.225F}));
}

TEST(NormalizeFlag, LeavesPixelsBetween0And1ForNone) {
  const Normalization chosen = choose_normalization("none", {{0.5F, 0.5F}, {2.0F, 2.0F}}, 2);
  EXPECT_EQ(chosen.mean, (std::vector<float>{0.0F, 0.0F}));
  EXPECT_EQ(chosen.stddev, (std::vector<float>{1.0F, 1.0F}));
}

TEST(NormalizeFlag, TakesMeansAndDeviations) {
  const Normalization chosen = choose_normalization("0.5,-1/0.25,2", {{0.0F}, {1.0F}}, 2);
  EXPECT_EQ(chosen.mean, (std::vector<float>{0.5F, -1.0F}));
  EXPECT_EQ(chosen.stddev, (std::vector<float>{0.25F, 2.0F}));
}

TEST(NormalizeFlag, IsThatOfTheDataSetByDefault) {
  EXPECT_EQ(choose_normalization("", {{0.1F}, {0.3F}}, 1).mean, std::vector<float>{0.1F});
}

TEST(NormalizeFlag, IsRefusedForOtherNumbersOfChannels) {
  EXPECT_TRUE(contains(message_of<UsageError>([&] {
                         choose_normalization("imagenet", {{0.1F}, {0.3F}}, 1);
                       }),
                       "--normalize imagenet has means for 3, the samples have 1"));
}

TEST(NormalizeFlag, IsRefusedInOtherForms) {
  for (const char* text : {"caffe", "0.5", "0.5/", "/0.5", "0.5/0", "0.5/-1", "0.5,0.5/1", "a/1",
                           "0.5/nan", "0.5/1/2", "inf/1"}) {
    EXPECT_THROW(parse_normalize(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace syncopate
