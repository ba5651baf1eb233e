// Runs `syncopate-bench scaling --data`, whose sides train on the samples that the flag names.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

ProgramResult run_scaling(const Arguments& more) {
  const Arguments command =
      as_words(SYNCOPATE_BENCH, "scaling --rounds 3 --model mlp --steps-per-round 3");
  return run_program(command + more);
}

TEST(ScalingProgram, TrainsOnTheDataUnderEveryStrategyOfTheGrid) {
  const TemporaryFolder scratch;
  const ProgramResult result = successful(run_scaling(
      as_words("--grid threads=1 replicas=1,2 --strategy mirrored,multi-worker-mirrored --data "
               "synthetic:1x8x8:4:320 --input-threads 2 --batch-size-per-replica 16 --json",
               scratch / "scaling.json", "--report", scratch / "page")));
  EXPECT_TRUE(contains(result.out,
                       "data synthetic:1x8x8:4:320: 320 training and 320 test samples, u8 "
                       "[8, 8, 1], 4 classes"));
  const auto table = nlohmann::json::parse(read_text(scratch / "scaling.json")).at(0);
  EXPECT_EQ(table.at("data"), "synthetic:1x8x8:4:320");
  EXPECT_EQ(table.at("samples_per_pass"), 320);
  ASSERT_EQ(table.at("rows").size(), 3U);
  EXPECT_EQ(table.at("rows").at(2).at("strategy"), "multi-worker-mirrored");
  EXPECT_TRUE(std::filesystem::exists(scratch / "page/scaling.html"));
}

TEST(ScalingProgram, RefusesDataThatDoNotFitInOneLine) {
  const auto refuse = [](const Arguments& more, const std::string& says) {
    expect_failure_in_one_line(run_scaling(more), 2, {says});
  };
  refuse({"--data", "npy:/nowhere"}, "there is no folder /nowhere");
  refuse({"--data", "synthetic:1x8x8:4:60", "--batch-size-per-replica", "31"},
         "batch of 62 (2 replicas): --data synthetic:1x8x8:4:60 has only 60 samples");
  refuse({"--image-size", "32"}, "--image-size and --exif require --data images:DIR");
}

}  // namespace
}  // namespace syncopate::test
