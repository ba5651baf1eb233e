// Training on a folder of pictures through the command line: the same bits under every synchronous
// strategy, after a resume, with and without a cache, and for any number of input threads.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/input/picture_folder.h"

namespace syncopate::test {
namespace {

class TrainingOnPictures : public testing::Test {
 protected:
  TrainingOnPictures() { folder_.write_splits(21, 6); }

  Arguments flags() const {
    return as_words("--model mlp --data", folder_.data_flag(),
                    "--image-size 12 --threads 1 --batch-size 4 --no-progress --cache-dir",
                    scratch_ / "cache");
  }
  // One epoch in batches of one picture per worker.
  Arguments one_by_one() const {
    return as_words(
        "--model mlp --data", folder_.data_flag(),
        "--image-size 12 --cache-mb 0 --no-progress --batch-size-per-replica 1 --epochs 1");
  }
  static Arguments asynchronous() {
    return as_words("--servers 1 -- train --strategy parameter-server --consistency async");
  }
  // Runs the program with these words and then flags() and `more`; returns the hash of the weights.
  std::string hash_of(const Arguments& words, const Arguments& more) const {
    const std::string metrics = scratch_ / ("metrics-" + std::to_string(++num_runs_));
    successful(run_syncopate(words + flags() + more + Arguments{"--metrics", metrics}));
    return summary_of(metrics).at("weights_hash").get<std::string>();
  }

  PictureFolder folder_;
  TemporaryFolder scratch_;
  mutable int num_runs_ = 0;
};

TEST_F(TrainingOnPictures, HasTheSameBitsUnderEverySynchronousStrategy) {
  expect_same_bits_under_synchronous_strategies(
      [this](const Arguments& where, const Arguments& what) { return hash_of(where, what); },
      {"--steps", "12", "--augment", "random-resized-crop"});
}

TEST_F(TrainingOnPictures, HasTheSameBitsAfterAResumeWithAndWithoutACacheAndForAnyThreads) {
  const Arguments train = {"train"};
  for (const std::string augment : {"crop-flip", "random-resized-crop"}) {
    const Arguments drawn = {"--augment", augment};
    const Arguments uncached = {"--cache-mb", "0"};
    const std::string expected = hash_of(train, drawn + uncached + Arguments{"--steps", "12"});
    for (const char* const threads : {"1", "8", "auto"}) {
      EXPECT_EQ(hash_of(train, drawn + as_words("--steps 12 --input-threads", threads, "--prefetch",
                                                threads)),
                expected);
    }
    const Arguments kept = drawn + Arguments{"--checkpoint-dir", scratch_ / augment, "--resume"};
    for (const char* const step : {"1", "4", "5", "6", "11"}) {
      hash_of(train, kept + Arguments{"--steps", step});
    }
    EXPECT_EQ(hash_of(train, kept + Arguments{"--steps", "12"}), expected);
  }
}

// A picture of 800 x 800 takes far longer to decode than a step on its 16 x 16 pixels.
TEST(TrainingOnLargePictures, SaysThatStepsWaitForTheDecoder) {
  const PictureFolder folder;
  const FileBytes picture = make_png(make_picture(800, 800));
  for (int i = 0; i < 44; ++i) {
    folder.write((i < 40 ? "train/" : "test/") + std::string(i % 2 == 0 ? "cat/" : "dog/") +
                     std::to_string(i) + ".png",
                 picture);
  }
  const Arguments train{"train",
                        "--model",
                        "mlp",
                        "--data",
                        folder.data_flag(),
                        "--epochs",
                        "4",  // an epoch is too short for a note on a fast machine
                        "--image-size",
                        "16",
                        "--cache-mb",
                        "0",
                        "--threads",
                        "1",
                        "--eval-every",
                        "0",
                        "--no-progress",
                        "--batch-size",
                        "4"};
  for (const std::string threads : {"1", "auto"}) {
    const ProgramResult result =
        successful(run_syncopate(train + Arguments{"--input-threads", threads}));
    EXPECT_TRUE(contains(result.err, "input-bound: ", "% of the step waits for decode; "));
  }
  const ProgramResult workers =
      successful(run_syncopate(Arguments{"launch", "--workers", "2", "--"} + train +
                               Arguments{"--strategy", "multi-worker-mirrored"}));
  const bool names_a_task = workers.err.find("task 0: input-bound: ") != std::string::npos ||
                            workers.err.find("task 1: input-bound: ") != std::string::npos;
  EXPECT_TRUE(names_a_task) << workers.err;
  const ProgramResult fast =
      run_syncopate(as_words("train --model mlp --data synthetic:1x8x8:4:640 --epochs 4 "
                             "--no-progress --service-time constant:20"));
  EXPECT_FALSE(contains(fast.err, "input-bound"));
}

TEST_F(TrainingOnPictures, IsEvaluatedInTheSizeOfTheCheckpoint) {
  hash_of({"train"}, {"--steps", "3", "--checkpoint-dir", scratch_ / "ck"});
  const std::string file = names_in(scratch_ / "ck").front();
  const auto evaluate = [&](const Arguments& more) {
    return run_syncopate(as_words("evaluate --checkpoint", scratch_ / ("ck/" + file), "--data",
                                  folder_.data_flag()) +
                         more);
  };
  const ProgramResult result = successful(evaluate({}));
  EXPECT_TRUE(contains(result.out, "samples         6"));
  const auto expect_refused = [&](const Arguments& more, const std::string& message) {
    expect_failure(evaluate(more), 2, {message});
  };
  const std::string samples = "21 samples of [12, 12, 3] in 2 classes; give that";
  expect_refused({"--exif"}, "which was trained with no --exif; give that");
  expect_refused({"--image-size", "13"}, "(21 samples of [13, 13, 3] in 2 classes) contradicts");
  expect_refused({"--image-size", "13"}, "trained with " + samples);
  folder_.write("train/cat/0.JPG", make_png(make_picture(9, 9, 3, 9)));
  expect_refused({}, "(as many, but other contents or labels) contradicts");
  expect_refused({}, "trained with " + samples);
}

TEST_F(TrainingOnPictures, IsNotResumedOnOtherPictures) {
  const Arguments resume = {"--steps", "3", "--checkpoint-dir", scratch_ / "ck", "--resume"};
  hash_of({"train"}, resume);
  folder_.write("train/cat/0.JPG", make_png(make_picture(9, 9, 3, 9)));
  const ProgramResult refused = run_syncopate(Arguments{"train"} + flags() + resume);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err,
                       "data: 21 samples of [12, 12, 3] in 2 classes, this run has as many, "
                       "but other contents or labels; give that --data"));
}

TEST_F(TrainingOnPictures, NamesTheCheckpointWhoseDataAreMissing) {
  hash_of({"train"}, {"--steps", "1", "--checkpoint-dir", scratch_ / "ck"});
  const std::string file = scratch_ / ("ck/" + names_in(scratch_ / "ck").front());
  std::filesystem::rename(folder_.path() / "train", folder_.path() / ".train");
  const Arguments evaluate = {"evaluate", "--checkpoint", file};
  const std::string recorded = "; checkpoint " + file + " records --data " + folder_.data_flag() +
                               "; give --data for another path";
  const std::string err = run_syncopate(evaluate).err;
  EXPECT_TRUE(contains(err, recorded));
  const std::string given = run_syncopate(evaluate + Arguments{"--data", folder_.data_flag()}).err;
  EXPECT_TRUE(contains(given, "--data images: "));
  EXPECT_FALSE(contains(given, "records")) << "the user gave that path";
}

TEST_F(TrainingOnPictures, IsEvaluatedWithTheNamesOfTheClasses) {
  hash_of({"train"}, {"--steps", "3", "--checkpoint-dir", scratch_ / "ck"});
  const Arguments evaluate =
      as_words("evaluate --checkpoint", scratch_ / ("ck/" + names_in(scratch_ / "ck").front()));
  const auto expect_names = [&](const std::string& first) {
    const std::string table = run_syncopate(evaluate).out;
    EXPECT_TRUE(contains(table, "%  " + first + "\n", "%  dog\n"));
    const auto classes =
        nlohmann::json::parse(run_syncopate(evaluate + Arguments{"--json"}).out).at("classes");
    EXPECT_EQ(classes.at(0).at("name"), first);
    EXPECT_EQ(classes.at(1).at("class"), 1);
    EXPECT_EQ(classes.at(1).at("name"), "dog");
  };
  expect_names("cat");
  // The names are those of training, and not those that the folders have now.
  for (const char* const split : {"train", "test"}) {
    std::filesystem::rename(folder_.path() / split / "cat", folder_.path() / split / "cow");
  }
  expect_names("cat");
}

TEST_F(TrainingOnPictures, EndsAtADamagedPictureOrReplacesIt) {
  folder_.write_text("train/cat/4.JPG", "<!doctype html>");
  const ProgramResult refused =
      run_syncopate(Arguments{"train"} + flags() + Arguments{"--epochs", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(
      contains(refused.err, "train/cat/4.JPG: expected a JPEG or PNG file, found HTML at byte 0"));
  const Arguments skip = {"--epochs", "1", "--skip-bad-records", "1"};
  EXPECT_EQ(hash_of({"train", "--strategy", "mirrored", "--replicas", "2"}, skip),
            hash_of({"train", "--strategy", "central-storage", "--replicas", "2"}, skip));
  for (const char* const consistency : {"sync", "async"}) {
    const std::string metrics = scratch_ / consistency;
    const ProgramResult trained = run_syncopate(
        Arguments{"train", "--strategy", "central-storage", "--consistency", consistency} +
        one_by_one() + Arguments{"--skip-bad-records", "1", "--metrics", metrics});
    EXPECT_TRUE(contains(trained.out, "replaced        1 bad training sample in an epoch\n"))
        << trained.out << trained.err;
    EXPECT_EQ(summary_of(metrics).at("train_bad_samples"), 1);
  }
}

TEST_F(TrainingOnPictures, IsEvaluatedWithoutADamagedPictureWhichIsReported) {
  folder_.write_text("test/dog/1.JPG", "");
  const std::string reason = folder_.path() / "test/dog/1.JPG";
  const std::string metrics = scratch_ / "metrics";
  const Arguments skip = {"--steps", "3", "--skip-bad-records", "1"};
  const ProgramResult trained =
      run_syncopate(Arguments{"train"} + flags() + skip +
                    Arguments{"--metrics", metrics, "--checkpoint-dir", scratch_ / "ck"});
  EXPECT_TRUE(contains(trained.err, "(5 samples, 1 bad left out"));
  const std::string line = "left out        1 bad test sample, first: " + reason;
  EXPECT_TRUE(contains(trained.out, line));
  const auto summary = summary_of(metrics);
  EXPECT_EQ(summary.at("test_bad_samples"), 1);
  EXPECT_EQ(summary.at("first_bad").get<std::string>().find(reason), 0U);
  const ProgramResult evaluated = run_syncopate(
      {"evaluate", "--checkpoint", scratch_ / ("ck/" + names_in(scratch_ / "ck")[0])});
  EXPECT_TRUE(contains(evaluated.out, "samples         5 ")) << evaluated.err;
  EXPECT_TRUE(contains(evaluated.out, line));
  // Of two workers, each of which evaluates a part.
  const ProgramResult two = run_syncopate(
      as_words("launch --workers 2 -- train --strategy multi-worker-mirrored") + flags() + skip);
  EXPECT_TRUE(contains(two.out, line));
}

TEST_F(TrainingOnPictures, EndsInTheFirstEpochWithMoreDamagedPicturesThanTheLimit) {
  for (const char* const name : {"cat/0.JPG", "cat/2.png", "dog/5.JPG"}) {
    folder_.write_text(std::string("train/") + name, "");
  }
  const Arguments launch = {"launch", "--workers", "3"};
  const Arguments all_reduce = {"--", "train", "--strategy", "multi-worker-mirrored"};
  for (const Arguments& words :
       {Arguments{"train"}, launch + all_reduce, launch + asynchronous()}) {
    for (const char* const limit : {"2", "3"}) {
      const ProgramResult result =
          run_syncopate(words + one_by_one() + Arguments{"--skip-bad-records", limit});
      const bool are_too_many = limit[0] == '2';
      EXPECT_EQ(result.exit_code, are_too_many ? 1 : 0) << result.out << result.err;
      EXPECT_EQ((result.out + result.err).find("more than --skip-bad-records") != std::string::npos,
                are_too_many)
          << result.err;
    }
  }
}

TEST_F(TrainingOnPictures, EndsAnAsynchronousJobAtOnceAtADamagedPicture) {
  folder_.write_text("train/cat/4.JPG", "");
  const ProgramResult result =
      run_syncopate(Arguments{"launch", "--workers", "2"} + asynchronous() + one_by_one());
  EXPECT_EQ(result.exit_code, 1);
  const std::string all = result.out + result.err;
  EXPECT_TRUE(contains(all, "train/cat/4.JPG: expected a JPEG or PNG file"));
  EXPECT_FALSE(contains(all, "the other workers continue"));
}

TEST_F(TrainingOnPictures, NamesTheFlagsOfAPictureThatIsTooSmallForTheNetwork) {
  expect_failure(run_syncopate(as_words("train --model mnist-cnn --data", folder_.data_flag(),
                                        "--image-size 3 --batch-size 4 --cache-mb 0")),
                 2, {"--model mnist-cnn does not fit --data images:"});
}

TEST_F(TrainingOnPictures, PredictsThePicturesThatItEvaluates) {
  (void)hash_of({"train"}, {"--steps", "20", "--checkpoint-dir", scratch_ / "ck"});
  std::string checkpoint;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "ck")) {
    if (entry.path().extension() == ".safetensors") checkpoint = entry.path().string();
  }
  const ProgramResult evaluated =
      successful(run_syncopate({"evaluate", "--json", "--checkpoint", checkpoint}));
  Arguments predict = {"predict", "--json", "--checkpoint", checkpoint};
  std::vector<std::string> classes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(folder_.data_flag().substr(folder_.data_flag().find(':') + 1)) /
           "test")) {
    if (!entry.is_regular_file()) continue;
    predict.push_back(entry.path().string());
    classes.push_back(entry.path().parent_path().filename().string());
  }
  const ProgramResult predicted = successful(run_syncopate(predict));
  std::istringstream lines(predicted.out);
  std::size_t num_lines = 0;
  int num_correct = 0;
  for (std::string line; std::getline(lines, line); ++num_lines) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("input"), predict.at(4 + num_lines));
    if (json.at("name") == classes.at(num_lines)) ++num_correct;
  }
  ASSERT_EQ(num_lines, classes.size());
  const double accuracy = nlohmann::json::parse(evaluated.out).at("test_accuracy");
  EXPECT_NEAR(num_correct / static_cast<double>(num_lines), accuracy, 1e-12);
}

TEST_F(TrainingOnPictures, RefusesToPredictAnEndlessPicture) {
  (void)hash_of({"train"}, {"--steps", "1", "--checkpoint-dir", scratch_ / "ck"});
  expect_failure(
      run_syncopate(as_words("predict --checkpoint",
                             scratch_ / "ck" / "checkpoint-000000000001.safetensors", "/dev/zero")),
      1, {"/dev/zero: expected a picture of at most 256 MB"});
}

}  // namespace
}  // namespace syncopate::test
