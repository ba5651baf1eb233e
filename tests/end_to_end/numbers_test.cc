// Trains networks whose targets are numbers through the command line: the same bits under every
// synchronous strategy, what evaluate and predict say of them, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/input/array/npy_bytes.h"

namespace syncopate::test {
namespace {

constexpr int kFeatures = 6;
constexpr int kNumbers = 3;

class TargetsThatAreNumbers : public testing::Test {
 protected:
  TargetsThatAreNumbers() {
    write_split("train", 400, 0);
    write_split("test", 50, 400);
    for (const char* const loss : {"mean-squared-error", "binary-cross-entropy"}) {
      std::ofstream(network(loss))
          << R"({"name": "numbers", "nodes": [{"op": "input"}, {"op": "flatten"},
        {"op": "dense", "name": "fc1", "features": 16}, {"op": "relu"},
        {"op": "dense", "name": "fc2", "features": "classes"}, {"op": ")"
          << loss << "\"}]}";
    }
  }

  // Writes samples whose targets, each 0 or 1, are whether two features have a positive sum.
  void write_split(const std::string& split, int count, int first) const {
    std::vector<float> x;
    std::vector<float> y;
    for (int i = first; i < first + count; ++i) {
      for (int f = 0; f < kFeatures; ++f) {
        x.push_back(static_cast<float>(std::sin(1.7 * i + 2.3 * f * (1 + i % 7))));
      }
      const std::size_t at = x.size() - kFeatures;
      for (std::size_t k = 0; k < kNumbers; ++k) {
        y.push_back(x[at + k] + x[at + k + kNumbers] > 0.0F ? 1.0F : 0.0F);
      }
    }
    const auto shape = [&](int columns) {
      return "(" + std::to_string(count) + ", " + std::to_string(columns) + ")";
    };
    write("x_" + split, npy_bytes("<f4", shape(kFeatures), bytes_of(x)));
    write("y_" + split, npy_bytes("<f4", shape(kNumbers), bytes_of(y)));
  }
  void write(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
    std::ofstream(scratch_ / (name + ".npy"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::string network(const std::string& loss) const { return scratch_ / (loss + ".json"); }
  std::string data() const { return "npy:" + (scratch_ / "").string(); }
  std::string metrics() const { return scratch_ / "m.jsonl"; }
  Arguments run_of(const std::string& loss) const {
    return as_words("--model", "file:" + network(loss), "--data", data(),
                    "--no-progress --batch-size 16 --metrics", metrics(),
                    "--log-every 10 --learning-rate 0.01");
  }
  ProgramResult train(const std::string& loss, const Arguments& more) const {
    return run_syncopate(Arguments{"train", "--threads", "1"} + run_of(loss) + more);
  }
  std::string checkpoint_in(const std::filesystem::path& folder) const {
    std::string newest;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string path = file.path();
      if (file.path().extension() == ".safetensors") newest = std::max(newest, path);
    }
    return newest;
  }
  std::string refusal(const Arguments& words) const {
    const ProgramResult result = run_syncopate(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  }

  TemporaryFolder scratch_;
};

TEST_F(TargetsThatAreNumbers, TrainToTheSameBitsUnderEverySynchronousStrategy) {
  for (const char* const loss : {"mean-squared-error", "binary-cross-entropy"}) {
    const auto hash_of = [&](const Arguments& where, const Arguments& what) {
      const ProgramResult run = successful(run_syncopate(where + run_of(loss) + what));
      return run.exit_code != 0 ? "" : summary_of(metrics()).at("weights_hash").get<std::string>();
    };
    const Arguments steps = {"--steps", "30", "--threads"};
    expect_same_bits_under_synchronous_strategies(hash_of, steps + Arguments{"1"});
    EXPECT_EQ(hash_of(one_device(), steps + Arguments{"2"}),
              hash_of(mirrored(2), steps + Arguments{"1"}))
        << loss;
  }
}

TEST_F(TargetsThatAreNumbers, AreScoredByTheirMeanAbsoluteError) {
  const ProgramResult run =
      successful(train("mean-squared-error",
                       as_words("--epochs 20 --checkpoint-dir", scratch_ / "run", "--keep-best")));
  EXPECT_TRUE(contains(run.out, "test mae        0."));
  const auto summary = summary_of(metrics());
  EXPECT_LT(summary.at("test_mae").get<double>(), 0.3);
  EXPECT_LT(summary.at("test_loss").get<double>(), 0.12);
  EXPECT_FALSE(summary.contains("test_accuracy"));
  EXPECT_TRUE(metrics_lines(metrics(), "step").front().contains("mae"));
  EXPECT_TRUE(metrics_lines(metrics(), "eval").front().contains("test_mae"));

  const std::string checkpoint = checkpoint_in(scratch_ / "run");
  const ProgramResult evaluated = successful(
      run_syncopate(as_words("evaluate --checkpoint", checkpoint, "--json --threads 1")));
  const auto json = nlohmann::json::parse(evaluated.out);
  EXPECT_EQ(json.at("test_mae"), summary.at("test_mae"));
  EXPECT_FALSE(json.contains("confusion"));
  const ProgramResult predicted = successful(
      run_syncopate({"predict", "--checkpoint", checkpoint, "--json", scratch_ / "x_test.npy"}));
  const auto first = nlohmann::json::parse(predicted.out.substr(0, predicted.out.find('\n')));
  EXPECT_EQ(first.at("values").size(), kNumbers);
  const ProgramResult text =
      run_syncopate({"predict", "--checkpoint", checkpoint, scratch_ / "x_test.npy"});
  EXPECT_TRUE(contains(text.out, "x_test.npy[0]: predicted "));
}

TEST_F(TargetsThatAreNumbers, AreProbabilitiesUnderBinaryCrossEntropy) {
  const ProgramResult run = successful(
      train("binary-cross-entropy", {"--epochs", "20", "--checkpoint-dir", scratch_ / "run"}));
  EXPECT_GT(summary_of(metrics()).at("test_accuracy").get<double>(), 0.9);
  const ProgramResult predicted = successful(run_syncopate(as_words(
      "predict --checkpoint", checkpoint_in(scratch_ / "run"), "--json", scratch_ / "x_test.npy")));
  const auto first = nlohmann::json::parse(predicted.out.substr(0, predicted.out.find('\n')));
  for (const double probability : first.at("probabilities")) {
    EXPECT_GE(probability, 0.0);
    EXPECT_LE(probability, 1.0);
  }
}

TEST_F(TargetsThatAreNumbers, EndTrainingByRulesOfTheirMetrics) {
  const ProgramResult run =
      successful(train("mean-squared-error", {"--epochs", "40", "--stop-at", "mae=0.45"}));
  EXPECT_TRUE(contains(run.err, "--stop-at mae=0.45 holds"));
  EXPECT_LE(summary_of(metrics()).at("test_mae").get<double>(), 0.45);
  const ProgramResult wrong = train("mean-squared-error", {"--stop-at", "accuracy=0.9"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err,
                       "--stop-at accuracy=0.9: evaluations of this network have the "
                       "metrics loss and mae"));
}

TEST_F(TargetsThatAreNumbers, AreRefusedByALossOfClasses) {
  EXPECT_TRUE(
      contains(refusal({"train", "--model", "mlp", "--data", data()}),
               "--model mlp does not fit --data " + data() +
                   ": its loss is softmax-cross-entropy, and the targets are numbers; choose a "
                   "loss in a network file: syncopate network --model mlp"));
  EXPECT_TRUE(
      contains(refusal(as_words("train --model", "file:" + network("mean-squared-error"),
                                "--data synthetic:1x2x2:3:600")),
               "mean-squared-error needs numbers as targets, and the data have classes; end "
               "the network with softmax-cross-entropy"));
  EXPECT_TRUE(contains(refusal(as_words("train --model", "file:" + network("mean-squared-error"),
                                        "--data", data(), "--label-smoothing 0.1")),
                       "--label-smoothing is for classes"));
  write("y_test", npy_bytes("<f4", "(50, 3)", bytes_of(std::vector<float>(150, 1.5F))));
  EXPECT_TRUE(contains(
      refusal({"train", "--model", "file:" + network("binary-cross-entropy"), "--data", data()}),
      "binary-cross-entropy needs targets from 0 to 1, and the data have targets "
      "from 1.5 to 1.5"));
}

TEST_F(TargetsThatAreNumbers, BeginWithANetworkFileOfTheMeanSquaredError) {
  const ProgramResult printed =
      successful(run_syncopate(as_words("network --model mlp --data", data(), "--json")));
  EXPECT_TRUE(contains(printed.out, "{\"op\": \"mean-squared-error\"}"));
  std::ofstream(network("printed")) << printed.out;
  EXPECT_EQ(train("printed", {"--steps", "2"}).exit_code, 0);
}

}  // namespace
}  // namespace syncopate::test
