// Training on TFRecord files through the command line, in each layout: the same bits under every
// synchronous strategy; what convert writes trains as its source does; and what evaluate needs.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/scratch_dir.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/worker/input/picture_folder.h"
#include "tests/worker/input/record/record_folders.h"

namespace syncopate::test {
namespace {

class TrainingOnRecords : public testing::Test {
 protected:
  // Runs the program with `where`, then `what`; returns the hash of the weights.
  std::string hash_of(const Arguments& where, const Arguments& what) const {
    const std::string metrics = scratch_ / ("metrics-" + std::to_string(++num_runs_));
    const ProgramResult result =
        run_syncopate(where + what +
                      Arguments{"--threads", "1", "--no-progress", "--metrics", metrics,
                                "--cache-dir", scratch_ / "cache"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (result.exit_code != 0) return result.err;
    return summary_of(metrics).at("weights_hash").get<std::string>();
  }
  void expect_same_bits(const Arguments& what) const {
    expect_same_bits_under_synchronous_strategies(
        [&](const Arguments& where, const Arguments& more) { return hash_of(where, more); },
        what + Arguments{"--batch-size", "4", "--epochs", "1"});
  }
  ProgramResult convert(const std::string& data, const std::string& name) const {
    return run_syncopate({"convert", "--to", "tfrecord", data, scratch_ / name});
  }
  std::string globs(const std::string& name) const {
    const std::string folder = scratch_ / name;
    return "tfrecord:" + folder + "/train-*::" + folder + "/test-*";
  }

  ScratchDir scratch_;
  mutable int num_runs_ = 0;
};

TEST_F(TrainingOnRecords, OfTensorFlowDatasetsHasTheSameBitsUnderEverySynchronousStrategy) {
  const std::string folder = scratch_ / "tiny/1.0.0";
  write_tfds(folder, {{"train", {9, 12}}, {"validation", {5}}, {"test", {6}}});
  expect_same_bits({"--model", "mlp", "--data", "tfds:" + folder, "--image-size", "12", "--augment",
                    "crop-flip"});
}

TEST_F(TrainingOnRecords, OfOtbtfHasTheSameBitsUnderEverySynchronousStrategy) {
  const std::string folder = scratch_ / "patches";
  write_otbtf(folder, {.train = 13});
  expect_same_bits({"--model", "fcn", "--data", "otbtf:" + folder});
}

TEST_F(TrainingOnRecords, OfValuesHasTheSameBitsUnderEverySynchronousStrategy) {
  ASSERT_EQ(convert("synthetic:2x4x4:3:22", "values").exit_code, 0);
  expect_same_bits({"--model", "mlp", "--data", globs("values"), "--raw-shape", "4x4x2:u8"});
}

TEST_F(TrainingOnRecords, OfConvertedPicturesHasTheBitsOfThePictures) {
  const PictureFolder pictures;
  pictures.write_splits(21, 6);
  const ProgramResult result = convert(pictures.data_flag(), "pictures");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("wrote 21 train, 6 test samples of images:"), std::string::npos);
  EXPECT_NE(result.out.find("read them with --data '" + globs("pictures") + "'\n"),
            std::string::npos)
      << result.out;
  const Arguments what = {"--model",      "mlp", "--image-size", "12",
                          "--batch-size", "4",   "--steps",      "9"};
  EXPECT_EQ(hash_of({"train", "--data", globs("pictures")}, what),
            hash_of({"train", "--data", pictures.data_flag()}, what));
}

// A folder may be named with a slash at its end, as shells complete it, and may be there if empty.
TEST_F(TrainingOnRecords, OfConvertedValuesHasTheBitsOfTheSourceWithTheFlagsThatConvertPrints) {
  std::filesystem::create_directory(scratch_ / "values");
  const ProgramResult result = convert("digits", "values/");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::size_t at = result.out.find("--normalize ");
  ASSERT_NE(at, std::string::npos) << result.out;
  const std::string normalize = result.out.substr(at + 12, result.out.find('\n', at) - at - 12);
  const Arguments what = {"--model", "mlp", "--steps", "9"};
  EXPECT_EQ(hash_of({"train", "--data", globs("values"), "--raw-shape", "28x28x1:u8", "--normalize",
                     normalize},
                    what),
            hash_of({"train", "--data", "digits"}, what));
}

TEST_F(TrainingOnRecords, IsEvaluatedWithTheFlagsOfTheCheckpoint) {
  ASSERT_EQ(convert("synthetic:2x4x4:3:22", "values").exit_code, 0);
  hash_of({"train"}, {"--model", "mlp", "--data", globs("values"), "--raw-shape", "4x4x2:u8",
                      "--steps", "3", "--batch-size", "4", "--checkpoint-dir", scratch_ / "ck"});
  const std::string file = scratch_ / ("ck/" + names_in(scratch_ / "ck").front());
  const ProgramResult result = run_syncopate({"evaluate", "--checkpoint", file});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("samples         22"), std::string::npos) << result.out;
}

TEST_F(TrainingOnRecords, EndsWithOneLineForWrongInput) {
  ASSERT_EQ(convert("synthetic:2x4x4:3:22", "values").exit_code, 0);
  const auto expect_refused = [&](const Arguments& words, int exit_code, const std::string& line) {
    const ProgramResult result = run_syncopate(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(line), std::string::npos) << result.err;
  };
  expect_refused({"train", "--data", "tfrecord:nothing-*"}, 2, "no file matches nothing-*");
  expect_refused(
      {"train", "--data", globs("values"), "--raw-shape", "4x4x2:u8", "--label-feature", "class"},
      2, "--label-feature class: there is no such feature in ");
  expect_refused({"train", "--data", "digits", "--raw-shape", "4x4x2:u8"}, 2,
                 "--raw-shape is for --data tfrecord:GLOB[::TEST_GLOB]; this is --data digits");
  expect_refused({"convert", "--to", "tfrecord", "synthetic:2x4x4:3:22", scratch_ / "values"}, 2,
                 "is there already; give the name of a new folder");
  expect_refused({"convert", "--to", "tfrecord", "shapes", scratch_ / "maps"}, 2,
                 "writes samples of u8, u16 or f32 with one class each; shapes has others");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "maps"));
  std::filesystem::resize_file(scratch_ / "values/train-00000.tfrecord", 100);
  expect_refused({"train", "--data", globs("values"), "--raw-shape", "4x4x2:u8"}, 1,
                 "train-00000.tfrecord: record at byte ");
}

}  // namespace
}  // namespace syncopate::test
