// Training on TFRecord files through the command line, in each layout: the same bits under every
// synchronous strategy; what convert writes trains as its source does; and what evaluate needs.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
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
        successful(run_syncopate(where + what +
                                 as_words("--threads 1 --no-progress --metrics", metrics,
                                          "--cache-dir", scratch_ / "cache")));
    if (result.exit_code != 0) return result.err;
    return summary_of(metrics).at("weights_hash").get<std::string>();
  }
  void expect_same_bits(const Arguments& what) const {
    expect_same_bits_under_synchronous_strategies(
        [&](const Arguments& where, const Arguments& more) { return hash_of(where, more); },
        what + Arguments{"--batch-size", "4", "--epochs", "1"});
  }
  ProgramResult convert(const std::string& data, const std::string& name,
                        const Arguments& more = {}) const {
    return run_syncopate(Arguments{"convert", "--to", "tfrecord", data, scratch_ / name} + more);
  }
  std::string globs(const std::string& name) const {
    const std::string folder = scratch_ / name;
    return "tfrecord:" + folder + "/train-*::" + folder + "/test-*";
  }

  TemporaryFolder scratch_;
  mutable int num_runs_ = 0;
};

TEST_F(TrainingOnRecords, OfTensorFlowDatasetsHasTheSameBitsUnderEverySynchronousStrategy) {
  const std::string folder = scratch_ / "tiny/1.0.0";
  write_tfds(folder, {{"train", {9, 12}}, {"validation", {5}}, {"test", {6}}});
  expect_same_bits(
      as_words("--model mlp --data", "tfds:" + folder, "--image-size 12 --augment crop-flip"));
}

TEST_F(TrainingOnRecords, OfOtbtfHasTheSameBitsUnderEverySynchronousStrategy) {
  const std::string folder = scratch_ / "patches";
  write_otbtf(folder, {.train = 13});
  expect_same_bits({"--model", "fcn", "--data", "otbtf:" + folder});
}

TEST_F(TrainingOnRecords, OfValuesHasTheSameBitsUnderEverySynchronousStrategy) {
  ASSERT_EQ(convert("synthetic:2x4x4:3:22", "values").exit_code, 0);
  expect_same_bits(as_words("--model mlp --data", globs("values"), "--raw-shape 4x4x2:u8"));
}

TEST_F(TrainingOnRecords, OfConvertedPicturesHasTheBitsOfThePictures) {
  const PictureFolder pictures;
  pictures.write_splits(21, 6);
  const ProgramResult result = successful(convert(pictures.data_flag(), "pictures"));
  EXPECT_TRUE(contains(result.out, "wrote 21 train, 6 test samples of images:",
                       "read them with --data '" + globs("pictures") + "'\n"));
  const Arguments what = as_words("--model mlp --image-size 12 --batch-size 4 --steps 9");
  EXPECT_EQ(hash_of({"train", "--data", globs("pictures")}, what),
            hash_of({"train", "--data", pictures.data_flag()}, what));
}

// A folder may be named with a slash at its end, as shells complete it, and may be there if empty.
TEST_F(TrainingOnRecords, OfConvertedValuesHasTheBitsOfTheSourceWithTheFlagsThatConvertPrints) {
  std::filesystem::create_directory(scratch_ / "values");
  const ProgramResult result = successful(convert("digits", "values/"));
  const std::size_t at = result.out.find("--normalize ");
  ASSERT_NE(at, std::string::npos) << result.out;
  const std::string normalize = result.out.substr(at + 12, result.out.find('\n', at) - at - 12);
  const Arguments what = {"--model", "mlp", "--steps", "9"};
  EXPECT_EQ(hash_of(as_words("train --data", globs("values"), "--raw-shape 28x28x1:u8 --normalize",
                             normalize),
                    what),
            hash_of({"train", "--data", "digits"}, what));
}

TEST_F(TrainingOnRecords, OfConvertedRecordsHasTheBitsSplitsAndClassNamesOfTheSource) {
  const std::string folder = scratch_ / "tiny/1.0.0";
  write_tfds(folder, {{"train", {9, 12}}, {"validation", {5}}, {"test", {6}}});
  const ProgramResult result = successful(convert("tfds:" + folder, "records"));
  EXPECT_TRUE(contains(result.out, "wrote 21 train, 5 validation, 6 test samples"));
  const std::string records = scratch_ / "records";
  const std::string data =
      "tfrecord:" + records + "/train-*::" + records + "/validation-*::" + records + "/test-*";
  EXPECT_TRUE(contains(result.out, "read them with --data '" + data + "'\n"));
  const Arguments what = as_words("--model mlp --image-size 12 --batch-size 4 --steps 9");
  EXPECT_EQ(hash_of({"train", "--data", data, "--checkpoint-dir", scratch_ / "ck"}, what),
            hash_of({"train", "--data", "tfds:" + folder}, what));
  const std::string file = scratch_ / ("ck/" + names_in(scratch_ / "ck").front());
  const ProgramResult evaluated =
      successful(run_syncopate({"evaluate", "--checkpoint", file, "--input-threads", "auto"}));
  EXPECT_TRUE(contains(evaluated.out, "  cat\n"));
}

TEST_F(TrainingOnRecords, IsEvaluatedWithClassNamesThatHaveSlashes) {
  const std::string folder = scratch_ / "tiny/1.0.0";
  write_tfds(folder, {{"train", {9}}, {"test", {6}}});
  const std::vector<std::string> names = {"T-shirt/top", "Trouser", "Pullover"};
  write_text(folder + "/label.labels.txt", "T-shirt/top\nTrouser\nPullover\n");
  hash_of({"train", "--data", "tfds:" + folder, "--checkpoint-dir", scratch_ / "ck"},
          as_words("--model mlp --image-size 12 --batch-size 4 --steps 2"));
  const std::string file = scratch_ / ("ck/" + names_in(scratch_ / "ck").front());
  const auto evaluated = nlohmann::json::parse(
      successful(run_syncopate({"evaluate", "--checkpoint", file, "--json"})).out);
  ASSERT_EQ(evaluated.at("classes").size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(evaluated.at("classes")[i].at("name"), names[i]);
  }
}

TEST_F(TrainingOnRecords, OfConvertedSamplesHasTheClassesThatNoSampleHas) {
  const ProgramResult result = successful(convert("synthetic:3x8x8:50:20", "values"));
  const Arguments what = as_words("--model mlp --batch-size 4 --steps 3");
  const std::size_t at = result.out.find("--normalize ");
  ASSERT_NE(at, std::string::npos) << result.out;
  const std::string normalize = result.out.substr(at + 12, result.out.find('\n', at) - at - 12);
  EXPECT_EQ(hash_of(as_words("train --data", globs("values"), "--raw-shape 8x8x3:u8 --normalize",
                             normalize),
                    what),
            hash_of({"train", "--data", "synthetic:3x8x8:50:20"}, what));
}

TEST_F(TrainingOnRecords, MayBeInAFolderWhoseNameHasLettersOfPatternsAndShells) {
  const PictureFolder pictures;
  pictures.write_splits(12, 4);
  const ProgramResult result = successful(convert(pictures.data_flag(), "it's [1]"));
  const std::size_t at = result.out.find("--data ");
  ASSERT_NE(at, std::string::npos) << result.out;
  const std::string data = result.out.substr(at, result.out.find('\n', at) - at);
  const std::string command = std::string(SYNCOPATE_PROGRAM) +
                              " train --model mlp --image-size 8 --batch-size 4 --steps 2 " +
                              "--no-progress " + data + " > " + (scratch_ / "out").string() +
                              " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << command << read_text(scratch_ / "out");
  EXPECT_EQ(convert(pictures.data_flag(), "a::b").exit_code, 2);
}

TEST_F(TrainingOnRecords, MayBeConvertedWithoutADamagedFirstRecord) {
  const std::string folder = scratch_ / "tiny/1.0.0";
  write_tfds(folder, {{"train", {12}}, {"test", {4}}});
  const std::string shard = folder + "/tiny-train.tfrecord-00000-of-00001";
  std::string bytes = read_text(shard);
  bytes[30] ^= 1;
  write_text(shard, bytes);
  const ProgramResult result = successful(run_syncopate(as_words(
      "convert --to tfrecord", "tfds:" + folder, scratch_ / "records", "--skip-bad-records 1")));
  EXPECT_TRUE(contains(result.out, "wrote 11 train, 4 test samples"));
}

TEST_F(TrainingOnRecords, MayBeConvertedWithTheFlagsOfRecords) {
  const Bytes values = {1, 2, 3, 4};
  std::vector<Bytes> records(5, labelled_record(values, 1, "x", "y"));
  write_text(scratch_ / "v/train-0", "");
  write_file(scratch_ / "v/train-0", record_bytes(records));
  write_file(scratch_ / "v/test-0", record_bytes(records));
  const ProgramResult of_values = successful(convert(
      globs("v"), "values", as_words("--image-feature x --label-feature y --raw-shape 2x2x1:u8")));
  EXPECT_TRUE(contains(of_values.out, "wrote 5 train, 5 test samples"));

  records.assign(5, labelled_record(picture_of(1), 1));
  records[2] = labelled_record({0xFF, 0xD8, 0xFF, 1, 2, 3}, 1);
  write_file(scratch_ / "v/train-0", record_bytes(records));
  write_file(scratch_ / "v/test-0", record_bytes({records[0]}));
  const ProgramResult of_pictures =
      successful(convert(globs("v"), "pictures", {"--skip-bad-records", "1"}));
  EXPECT_TRUE(contains(of_pictures.out, "wrote 4 train, 1 test samples"));
  EXPECT_TRUE(contains(of_pictures.err, "a bad sample is left out: "));
  records[3] = records[2];
  write_file(scratch_ / "v/train-0", record_bytes(records));
  const ProgramResult refused = convert(globs("v"), "too-bad", {"--skip-bad-records", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(
      contains(refused.err, "2 bad samples in split train, more than --skip-bad-records 1"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "too-bad"));
}

// 45,000 samples of 3 KB are more than one file of 128 MB.
TEST_F(TrainingOnRecords, NoticesThatOneOfTheConvertedFilesIsMissing) {
  successful(convert("synthetic:3x32x32:3:45000", "values"));
  EXPECT_EQ(names_in(scratch_ / "values"),
            as_words("test-00000-of-00002.tfrecord test-00001-of-00002.tfrecord "
                     "train-00000-of-00002.tfrecord train-00001-of-00002.tfrecord"));
  std::filesystem::remove(scratch_ / "values/train-00001-of-00002.tfrecord");
  const ProgramResult refused = run_syncopate({"train", "--data", globs("values")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err,
                       "1 of 2 shards are there; the first that is missing is "
                       "train-00001-of-00002.tfrecord"));
}

TEST_F(TrainingOnRecords, LeavesNoFolderWhenItsConversionIsStopped) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::filesystem::path folder = scratch_ / std::to_string(signal);
    std::filesystem::create_directories(folder);
    RunningProgram program(syncopate_command(
        {"convert", "--to", "tfrecord", "synthetic:3x32x32:3:60000", folder / "records"}));
    ASSERT_TRUE(program.wait_until(folder, [&] { return !names_in(folder).empty(); }));
    program.send(signal);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.exit_code, 1) << "ended by signal " << result.ended_by_signal;
    EXPECT_TRUE(
        contains(result.err, signal == SIGTERM ? "stopped by SIGTERM" : "stopped by SIGINT"));
    EXPECT_EQ(names_in(folder), Arguments{});
  }
}

TEST_F(TrainingOnRecords, EqualsTheUninterruptedRunAfterKills) {
  const std::string folder = scratch_ / "tiny/1.0.0";
  write_tfds(folder, {{"train", {40, 0, 60}}, {"validation", {5}}, {"test", {6}}});
  const Arguments run =
      as_words("train --model mlp --data", "tfds:" + folder,
               "--image-size 12 --augment random-resized-crop --threads 1 --steps 1500 "
               "--batch-size 8 --input-threads 2 --log-every 1 --no-progress --cache-dir",
               scratch_ / "cache");
  successful(run_syncopate(run + Arguments{"--metrics", scratch_ / "whole"}));
  const Arguments kept =
      run + Arguments{"--checkpoint-dir", scratch_ / "ck", "--resume", "--checkpoint-every", "7"};
  for (const int steps : {9, 40}) {  // the second kill is in a later epoch of 12 steps
    const std::filesystem::path metrics = scratch_ / ("killed-" + std::to_string(steps));
    RunningProgram program(syncopate_command(kept + Arguments{"--metrics", metrics}));
    ASSERT_TRUE(program.wait_until_file_has(metrics, "\"event\":\"step\"", steps)) << steps;
    program.send(SIGKILL);
    ASSERT_EQ(program.wait().ended_by_signal, SIGKILL)
        << "it ended before the kill: nothing was tested";
  }
  const ProgramResult last =
      successful(run_syncopate(kept + Arguments{"--metrics", scratch_ / "last"}));
  EXPECT_TRUE(contains(last.err, "resumed from"));
  const auto expected = summary_of(scratch_ / "whole");
  const auto summary = summary_of(scratch_ / "last");
  EXPECT_EQ(summary.at("weights_hash"), expected.at("weights_hash"));
  EXPECT_EQ(summary.at("test_loss"), expected.at("test_loss"));
}

TEST_F(TrainingOnRecords, IsEvaluatedWithTheFlagsOfTheCheckpoint) {
  ASSERT_EQ(convert("synthetic:2x4x4:3:22", "values").exit_code, 0);
  hash_of({"train"}, as_words("--model mlp --data", globs("values"),
                              "--raw-shape 4x4x2:u8 --steps 3 --batch-size 4 --checkpoint-dir",
                              scratch_ / "ck"));
  const std::string file = scratch_ / ("ck/" + names_in(scratch_ / "ck").front());
  const ProgramResult result = successful(run_syncopate({"evaluate", "--checkpoint", file}));
  EXPECT_TRUE(contains(result.out, "samples         22"));
}

TEST_F(TrainingOnRecords, EndsWithOneLineForWrongInput) {
  ASSERT_EQ(convert("synthetic:2x4x4:3:22", "values").exit_code, 0);
  const auto expect_refused = [&](const Arguments& words, int exit_code, const std::string& line) {
    const ProgramResult result = run_syncopate(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_TRUE(contains(result.err, line));
  };
  expect_refused({"train", "--data", "tfrecord:nothing-*"}, 2, "no file matches nothing-*");
  expect_refused(
      as_words("train --data", globs("values"), "--raw-shape 4x4x2:u8 --label-feature class"), 2,
      "--label-feature class: there is no such feature in ");
  expect_refused(
      {"train", "--data", "digits", "--raw-shape", "4x4x2:u8"}, 2,
      "--raw-shape is for --data tfrecord:GLOB[::[VAL_GLOB::]TEST_GLOB]; this is --data digits");
  expect_refused({"convert", "--to", "tfrecord", "synthetic:2x4x4:3:22", scratch_ / "values"}, 2,
                 "is there already; give the name of a new folder");
  expect_refused(
      {"convert", "--to", "tfrecord", "shapes", scratch_ / "maps"}, 2,
      "writes samples of u8, u16 or f32 with one class each; those of shapes have a label map");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "maps"));
  std::filesystem::resize_file(scratch_ / "values/train-00000-of-00001.tfrecord", 100);
  expect_refused({"train", "--data", globs("values"), "--raw-shape", "4x4x2:u8"}, 1,
                 "train-00000-of-00001.tfrecord: record at byte ");
  std::filesystem::remove(scratch_ / "values/train-00000-of-00001.tfrecord");
  expect_refused({"train", "--data", globs("values")}, 2, "no file matches ");
}

}  // namespace
}  // namespace syncopate::test
