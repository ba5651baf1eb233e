// Runs `syncopate-bench input` on a folder of small pictures.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/scratch_dir.h"
#include "tests/worker/input/picture_folder.h"

namespace syncopate::test {
namespace {

using Arguments = std::vector<std::string>;

ProgramResult run_input(const Arguments& more) {
  return RunningProgram(Arguments{SYNCOPATE_BENCH, "input", "--quick", "--rounds", "3"} + more)
      .wait();
}

TEST(InputProgram, MeasuresDecodingAndThePipelineWithPicturesFromFiles) {
  const PictureFolder pictures;
  pictures.write_splits(8);
  const ScratchDir scratch;
  const ProgramResult result =
      run_input({"--data", pictures.data_flag(), "--image-size", "12", "--batch-size", "4",
                 "--cache-dir", scratch / "cache", "--json", scratch / "input.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("libjpeg-turbo alone"), std::string::npos) << result.out;
  const auto document = nlohmann::json::parse(read_text(scratch / "input.json"));
  const auto& decoding = document.at("decoding");
  EXPECT_EQ(decoding.at("files"), 4) << "the PNG files are not counted";
  ASSERT_EQ(decoding.at("ours").size(), 2);
  for (const auto& side : decoding.at("ours")) EXPECT_GT(side.at("ratio").at("median"), 0.0);
  ASSERT_EQ(document.at("pipeline").size(), 2);
  EXPECT_EQ(document["pipeline"][0].at("cached"), false);
  EXPECT_EQ(document["pipeline"][1].at("cached"), true);
  for (const auto& epoch : document["pipeline"]) {
    EXPECT_EQ(epoch.at("ours_per_second_per_round").size(), 3);
  }
}

TEST(InputProgram, RefusesAPeerWithoutPictures) {
  const ProgramResult result = run_input({"--data", "digits", "--peer-python", "python3"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("give --data images:DIR or tfds:DIR"), std::string::npos) << result.err;
  const ProgramResult records = run_input({"--data", "tfds:none", "--peer-python", "python3"});
  EXPECT_EQ(records.exit_code, 2);
  EXPECT_NE(records.err.find("there is no folder none"), std::string::npos) << records.err;
}

}  // namespace
}  // namespace syncopate::test
