// Trains a network of label maps through the command line: the same bits under every synchronous
// strategy, and what evaluate and predict say of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/input/image/encoded_samples.h"

namespace syncopate::test {
namespace {

class LabelMaps : public testing::Test {
 protected:
  Arguments run_of(const Arguments& more) const {
    return as_words(
               "--model fcn --data shapes --augment crop-flip --threads 1 --no-progress "
               "--learning-rate 0.004") +
           more;
  }
  nlohmann::json summary_of(const Arguments& start, const Arguments& more) const {
    const std::string metrics = scratch_ / "m.jsonl";
    const ProgramResult run =
        successful(run_syncopate(start + run_of(more) + Arguments{"--metrics", metrics}));
    if (run.exit_code != 0) return {{"weights_hash", ""}, {"test_mean_iou", 0.0}};
    return metrics_lines(metrics, "summary").front();
  }
  // Returns what synchronous strategies must agree on.
  std::string weights_and_iou(const Arguments& start) const {
    const auto summary = summary_of(start, {"--steps", "20", "--batch-size", "16"});
    return summary.at("weights_hash").get<std::string>() + " " + summary.at("test_mean_iou").dump();
  }

  TemporaryFolder scratch_;
};

TEST_F(LabelMaps, TrainToTheSameBitsUnderSynchronousStrategies) {
  const Arguments two = {"launch", "--workers", "2"};
  const Arguments train = {"--", "train", "--strategy"};
  const std::string mirrored =
      weights_and_iou({"train", "--strategy", "mirrored", "--replicas", "2"});
  EXPECT_GT(mirrored.size(), 20U) << mirrored;
  EXPECT_EQ(weights_and_iou({"train", "--strategy", "central-storage", "--replicas", "2"}),
            mirrored);
  EXPECT_EQ(weights_and_iou(two + train + Arguments{"multi-worker-mirrored"}), mirrored);
  EXPECT_EQ(weights_and_iou(two + Arguments{"--servers", "1"} + train +
                            Arguments{"parameter-server", "--consistency", "sync"}),
            mirrored);
}

TEST_F(LabelMaps, EndTrainingByTheirIoU) {
  const Arguments asynchronous =
      as_words("launch --servers 1 --workers 2 -- train --strategy parameter-server");
  for (const Arguments& start : {Arguments{"train"}, asynchronous}) {
    const auto summary =
        summary_of(start, as_words("--steps 2000 --batch-size-per-replica 16 --eval-every-steps 20 "
                                   "--stop-at mean_iou=0.4"));
    EXPECT_LT(summary.at("steps"), 2000);
    EXPECT_GT(summary.at("test_mean_iou"), 0.3);
  }
}

// A whole training, to the quality that a user expects, is left to the learning tests.
TEST_F(LabelMaps, AreEvaluatedByIoUAndPredictedAsPictures) {
  const std::string folder = scratch_ / "run";
  const ProgramResult trained = successful(
      run_syncopate(Arguments{"train"} +
                    run_of(as_words("--steps 150 --batch-size 16 --checkpoint-dir", folder))));
  std::string checkpoint;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".safetensors") checkpoint = file.path();
  }
  const ProgramResult evaluated =
      successful(run_syncopate({"evaluate", "--checkpoint", checkpoint, "--json"}));
  const auto json = nlohmann::json::parse(evaluated.out);
  double sum = 0.0;
  std::int64_t pixels = 0;
  for (const auto& row : json.at("classes")) {
    sum += row.at("iou").get<double>();
    pixels += row.at("samples").get<std::int64_t>();
  }
  EXPECT_NEAR(json.at("test_mean_iou").get<double>(), sum / 3.0, 1e-12);
  EXPECT_GT(json.at("test_mean_iou").get<double>(), 0.4);
  std::ostringstream percent;
  percent << std::fixed << std::setprecision(2) << 100.0 * json.at("test_mean_iou").get<double>();
  const std::string while_training = "mean IoU " + percent.str() + "%";
  EXPECT_TRUE(contains(trained.out, while_training));
  EXPECT_EQ(pixels, 1000 * 64 * 64);
  const ProgramResult text = run_syncopate({"evaluate", "--checkpoint", checkpoint});
  EXPECT_TRUE(contains(text.out, while_training));

  // Any picture of any size is predicted; a map is a picture itself.
  const std::vector<std::byte> png = make_png(make_picture(90, 50, 3, 1));
  std::ofstream(scratch_ / "a.png", std::ios::binary)
      .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  const ProgramResult predicted = successful(run_syncopate(as_words(
      "predict --checkpoint", checkpoint, "--json --maps", scratch_ / "maps", scratch_ / "a.png")));
  const auto line = nlohmann::json::parse(predicted.out);
  double shares = 0.0;
  for (const double share : line.at("shares")) shares += share;
  EXPECT_NEAR(shares, 1.0, 1e-12);
  EXPECT_TRUE(std::filesystem::exists(line.at("map").get<std::string>()));

  // No map replaces a picture, or the map of another picture.
  std::filesystem::create_directory(scratch_ / "b");
  std::filesystem::copy(scratch_ / "a.png", scratch_ / "b" / "a.png");
  const auto size = std::filesystem::file_size(scratch_ / "a.png");
  expect_failure(run_syncopate(as_words("predict --checkpoint", checkpoint, "--maps", scratch_ / "",
                                        scratch_ / "a.png")),
                 2, {"would replace an input"});
  EXPECT_EQ(std::filesystem::file_size(scratch_ / "a.png"), size);
  expect_failure(
      run_syncopate(as_words("predict --checkpoint", checkpoint, "--maps", scratch_ / "maps",
                             scratch_ / "a.png", scratch_ / "b" / "a.png")),
      2, {"has the name of another input"});
}

}  // namespace
}  // namespace syncopate::test
