// Runs `syncopate-bench input` on a folder of small pictures.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/input/picture_folder.h"

namespace syncopate::test {
namespace {

ProgramResult run_input(const Arguments& more) {
  return run_program(Arguments{SYNCOPATE_BENCH, "input", "--quick", "--rounds", "3"} + more);
}

TEST(InputProgram, MeasuresDecodingAndThePipelineWithPicturesFromFiles) {
  const PictureFolder pictures;
  pictures.write_splits(8);
  const TemporaryFolder scratch;
  const ProgramResult result = successful(run_input(
      as_words("--data", pictures.data_flag(), "--image-size 12 --batch-size 4 --cache-dir",
               scratch / "cache", "--json", scratch / "input.json")));
  EXPECT_TRUE(contains(result.out, "libjpeg-turbo alone"));
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
  expect_failure(run_input({"--data", "digits", "--peer-python", "python3"}), 2,
                 {"give --data images:DIR or tfds:DIR"});
  expect_failure(run_input({"--data", "tfds:none", "--peer-python", "python3"}), 2,
                 {"there is no folder none"});
}

}  // namespace
}  // namespace syncopate::test
