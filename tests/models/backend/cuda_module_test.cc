// Tests which devices run the code of a CUDA module, with described devices.
#include "models/backend/cuda_module.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

const std::vector<std::string> kReleased = {"75-real", "80-real",  "86-real",
                                            "89-real", "90a-real", "90-virtual"};

std::string why(int major, int minor, const std::vector<std::string>& architectures,
                Precision precision = Precision::kF32) {
  return why_unusable({.name = "GPU", .major = major, .minor = minor}, precision, architectures);
}

TEST(ACudaDevice, RunsTheCodeOfItsMajorVersionAndWhatTheDriverCompiles) {
  for (const auto& [major, minor] :
       {std::pair{7, 5}, {8, 0}, {8, 6}, {8, 7}, {8, 9}, {9, 0}, {10, 0}, {12, 0}}) {
    EXPECT_EQ(why(major, minor, kReleased), "") << major << "." << minor;
  }
  EXPECT_EQ(why(8, 6, {"80-real"}), "");
  EXPECT_EQ(why(8, 9, {"86"}), "");
  EXPECT_EQ(why(12, 0, {"90"}), "") << "a number alone stands for both kinds of code";
  EXPECT_EQ(why(12, 0, {"native"}), "") << "the build knew the device";
}

TEST(ACudaDevice, IsRefusedWithoutCodeForIt) {
  EXPECT_EQ(why(8, 0, {"90a-real", "90-virtual"}),
            "GPU has compute capability 8.0, and this build has code for 90a-real, 90-virtual; "
            "configure with -DCMAKE_CUDA_ARCHITECTURES=80, and build again");
  EXPECT_NE(why(8, 0, {"86-real"}), "");
  EXPECT_NE(why(9, 0, {"80-real"}), "");
  EXPECT_NE(why(10, 0, {"90a-real"}), "") << "a letter stands for one compute capability";
  EXPECT_EQ(why(7, 0, kReleased),
            "GPU has compute capability 7.0, and CUDA 13 has no code for GPUs below 7.5, such as "
            "V100 and P100; choose --devices cpu, or a newer GPU");
}

TEST(ACudaDevice, NeedsCompute80ForBf16) {
  EXPECT_EQ(why(7, 5, kReleased, Precision::kBf16),
            "GPU has compute capability 7.5, and bf16 needs 8.0; choose --precision fp16 or f32");
  EXPECT_EQ(why(7, 5, kReleased, Precision::kF16), "");
  EXPECT_EQ(why(8, 0, kReleased, Precision::kBf16), "");
}

}  // namespace
}  // namespace syncopate
