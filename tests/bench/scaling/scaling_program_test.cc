// Runs `syncopate-bench scaling --data`, whose sides train on the samples that the flag names.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/scratch_dir.h"

namespace syncopate::test {
namespace {

using Arguments = std::vector<std::string>;

ProgramResult run_scaling(const Arguments& more) {
  const Arguments command{SYNCOPATE_BENCH, "scaling", "--rounds",          "3",
                          "--model",       "mlp",     "--steps-per-round", "3"};
  return RunningProgram(command + more).wait();
}

TEST(ScalingProgram, TrainsOnTheDataUnderEveryStrategyOfTheGrid) {
  const ScratchDir scratch;
  const ProgramResult result = run_scaling(
      {"--grid", "threads=1", "replicas=1,2", "--strategy", "mirrored,multi-worker-mirrored",
       "--data", "synthetic:1x8x8:4:320", "--input-threads", "2", "--batch-size-per-replica", "16",
       "--json", scratch / "scaling.json", "--report", scratch / "page"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("data synthetic:1x8x8:4:320: 320 training and 320 test samples, u8 "
                            "[8, 8, 1], 4 classes"),
            std::string::npos)
      << result.out;
  const auto table = nlohmann::json::parse(read_text(scratch / "scaling.json")).at(0);
  EXPECT_EQ(table.at("data"), "synthetic:1x8x8:4:320");
  EXPECT_EQ(table.at("samples_per_pass"), 320);
  ASSERT_EQ(table.at("rows").size(), 3U);
  EXPECT_EQ(table.at("rows").at(2).at("strategy"), "multi-worker-mirrored");
  EXPECT_TRUE(std::filesystem::exists(scratch / "page/scaling.html"));
}

TEST(ScalingProgram, RefusesDataThatDoNotFitInOneLine) {
  const auto refuse = [](const Arguments& more, const std::string& says) {
    const ProgramResult result = run_scaling(more);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
  };
  refuse({"--data", "npy:/nowhere"}, "there is no folder /nowhere");
  refuse({"--data", "synthetic:1x8x8:4:60", "--batch-size-per-replica", "31"},
         "batch of 62 (2 replicas): --data synthetic:1x8x8:4:60 has only 60 samples");
  refuse({"--image-size", "32"}, "--image-size and --exif require --data images:DIR");
}

}  // namespace
}  // namespace syncopate::test
