// Tests the flags of training practice under every strategy.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

struct Placement {
  const char* name;
  Arguments where;
  bool is_synchronous;
};
std::ostream& operator<<(std::ostream& out, const Placement& placement) {
  return out << placement.name;
}

Arguments central_storage(const Arguments& more = {}) {
  return as_words("train --strategy central-storage --replicas 2 --share-devices") + more;
}

// Two replicas in each placement but the first.
std::vector<Placement> placements() {
  return {{"OneDevice", one_device(), true},
          {"Mirrored", mirrored(2), true},
          {"CentralStorage", central_storage(), true},
          {"CentralStorageAsync", central_storage({"--consistency", "async"}), false},
          {"MultiWorkerMirrored", multi_worker(2), true},
          {"ServersSync",
           parameter_servers({.workers = 2, .servers = 2}, {"--consistency", "sync"}), true},
          {"ServersAsync",
           parameter_servers({.workers = 2, .servers = 2}, {"--consistency", "async"}), false}};
}

// Epochs of 16 steps of 32 samples, with an evaluation after each.
const Arguments kSmall = as_words("--model mlp --data synthetic:1x8x8:4:512 --optimizer momentum");

class TrainingPractice : public testing::TestWithParam<Placement> {
 protected:
  // Samples per step: of all synchronous replicas together, or of one asynchronous worker.
  Arguments batch() const {
    return {GetParam().is_synchronous ? "--batch-size" : "--batch-size-per-replica", "32"};
  }
  Arguments what(const Arguments& more) const { return kSmall + batch() + more; }
  nlohmann::json run(const Arguments& more) {
    return runs_.summary_of(GetParam().where, what(more));
  }

  TrainingRuns runs_;
};

TEST_P(TrainingPractice, TrainsWithSmoothedLabels) {
  const double plain = run({"--epochs", "2"}).at("train_loss");
  const auto smoothed = run({"--epochs", "2", "--label-smoothing", "0.2"});
  // The loss of smoothed targets is at least their entropy, 0.59 for four classes.
  EXPECT_GT(smoothed.at("train_loss").get<double>(), std::max(0.58, plain));
}

TEST_P(TrainingPractice, EndsWhenAnEvaluationReachesTheTarget) {
  const auto summary = run({"--epochs", "1000", "--stop-at", "accuracy=0.9"});
  EXPECT_LT(summary.at("steps"), 16 * 1000);
  EXPECT_EQ(runs_.evaluations().back().at("step"), summary.at("steps"));
  if (GetParam().is_synchronous) {
    EXPECT_GE(summary.at("test_accuracy"), 0.9);
    const auto evaluations = runs_.evaluations();
    EXPECT_EQ(evaluations.size(), summary.at("steps").get<std::size_t>() / 16) << "one per epoch";
  }
}

// With this rate nothing is learnt, and no evaluation but the first is better by 0.5. Asynchronous
// workers train on while one of them evaluates.
const Arguments kStandStill{"--learning-rate", "1e-9", "--epochs"};

TEST_P(TrainingPractice, EndsWhenEvaluationsAreNoLongerBetter) {
  const auto summary = run(
      kStandStill + Arguments{"1000", "--early-stop", "metric=val_loss,patience=2,min-delta=0.5"});
  EXPECT_GE(summary.at("steps"), 3 * 16);
  EXPECT_LT(summary.at("steps"), 1000 * 16);
  if (GetParam().is_synchronous) {
    EXPECT_EQ(summary.at("steps"), 3 * 16);
  }
}

TEST_P(TrainingPractice, LowersTheLearningRateOnAPlateau) {
  const char* epochs = GetParam().is_synchronous ? "8" : "1000";
  run(kStandStill +
      as_words(epochs, "--log-every 16 --reduce-on-plateau factor=0.5,patience=1,min-delta=0.5"));
  std::vector<double> rates;
  for (const auto& line : runs_.lines("step")) rates.push_back(line.at("learning_rate"));
  ASSERT_FALSE(rates.empty());
  EXPECT_LE(rates.back(), 0.25e-9);
  if (GetParam().is_synchronous) {
    EXPECT_EQ(rates.front(), 1e-9);
    // Six evaluations between the first one and the last epoch are no better.
    EXPECT_DOUBLE_EQ(rates.back(), 1e-9 / 64);
  }
}

TEST_P(TrainingPractice, ReturnsToTheScheduledRateWhenResumedWithoutTheRule) {
  const Arguments folder{"--log-every", "16", "--checkpoint-dir", runs_ / "ck"};
  run(kStandStill +
      as_words(GetParam().is_synchronous ? "4" : "200",
               "--reduce-on-plateau factor=0.5,patience=1,min-delta=0.5") +
      folder);
  ASSERT_LT(runs_.lines("step").back().at("learning_rate"), 1e-9);
  run(kStandStill + Arguments{GetParam().is_synchronous ? "6" : "202", "--resume"} + folder);
  for (const auto& line : runs_.lines("step")) EXPECT_EQ(line.at("learning_rate"), 1e-9);
}

TEST_P(TrainingPractice, KeepsTheBestCheckpoint) {
  const Arguments more =
      as_words("--epochs 5 --checkpoint-dir", runs_ / "ck", "--keep-checkpoints 1 --keep-best");
  const ProgramResult result = runs_.train(
      GetParam().where, what(more + Arguments{"--early-stop", "metric=loss,patience=100"}));
  const std::string marker = "best            ";
  const std::size_t at = result.out.find(marker);
  ASSERT_NE(at, std::string::npos) << result.out;
  const std::string best =
      result.out.substr(at + marker.size(), result.out.find('\n', at) - at - marker.size());
  EXPECT_TRUE(std::filesystem::exists(best)) << best;
  double least = 1e9;
  std::int64_t step = 0;
  for (const auto& line : runs_.evaluations()) {
    if (line.at("test_loss") >= least) continue;
    least = line.at("test_loss");
    step = line.at("step");
  }
  EXPECT_TRUE(contains(best, std::to_string(step) + ".safetensors"));
}

TEST_P(TrainingPractice, ClipsTheGradientOfAStep) {
  if (std::string_view(GetParam().name) == "ServersSync") {
    expect_failure(run_syncopate(GetParam().where + what({"--clip-norm", "1"})), 2,
                   {"--clip-norm requires"});
    return;
  }
  const auto plain = run({"--epochs", "2", "--eval-every", "0"});
  // Steps of at most 1e-6 learn nothing.
  const auto clipped = run(as_words("--epochs 2 --clip-norm 1e-6 --momentum 0"));
  EXPECT_LT(plain.at("train_loss").get<double>(), 0.9 * clipped.at("train_loss").get<double>());
}

TEST_P(TrainingPractice, AddsMicroBatchesUpToAStep) {
  const Arguments two{"--epochs", "2", "--log-every", "1"};
  const auto whole = run(two);
  const auto parts = run(two + Arguments{"--accumulate", "4"});
  if (GetParam().is_synchronous) {  // --batch-size is that of the whole step
    EXPECT_EQ(parts.at("steps"), whole.at("steps"));
    EXPECT_NEAR(parts.at("test_loss").get<double>(), whole.at("test_loss").get<double>(), 1e-3);
  } else {
    EXPECT_EQ(parts.at("steps"), whole.at("steps").get<int>() / 4);
  }
  EXPECT_EQ(parts.at("samples"), whole.at("samples"));
}

TEST_P(TrainingPractice, EvaluatesTheMovingAverage) {
  const Arguments more{"--epochs", "3", "--checkpoint-dir", runs_ / "ck"};
  const auto plain = run({"--epochs", "3"});
  const auto averaged = run(more + Arguments{"--ema", "0.9"});
  if (GetParam().is_synchronous) {
    EXPECT_EQ(averaged.at("weights_hash"), plain.at("weights_hash"));
    EXPECT_NE(averaged.at("test_loss"), plain.at("test_loss"));
  }
  const std::string steps = std::to_string(averaged.at("steps").get<int>());
  const std::string name =
      "checkpoint-" + std::string(12 - steps.size(), '0') + steps + ".safetensors";
  const ProgramResult result = successful(
      run_syncopate(as_words("evaluate --checkpoint", runs_ / "ck" / name, "--threads 1 --json")));
  EXPECT_NEAR(nlohmann::json::parse(result.out).at("test_loss").get<double>(),
              averaged.at("test_loss").get<double>(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Each, TrainingPractice, testing::ValuesIn(placements()),
                         [](const auto& parameters) { return std::string(parameters.param.name); });

TEST(AResumedRun, GoesOnWithTheAverageAndWithMicroBatches) {
  TrainingRuns runs;
  const Arguments flags = as_words(
      "--batch-size 32 --accumulate 3 --clip-norm 0.5 --ema 0.9 --keep-best --label-smoothing 0.1");
  for (const Arguments& where : {one_device(), mirrored(2), central_storage(), multi_worker(2)}) {
    const Arguments whole{"--checkpoint-dir", runs / "whole"};
    const Arguments parts{"--checkpoint-dir", runs / "parts"};
    const auto expected =
        runs.summary_of(where, kSmall + flags + whole + Arguments{"--steps", "40"});
    runs.train(where, kSmall + flags + parts + Arguments{"--steps", "21"});
    const auto found =
        runs.summary_of(where, kSmall + flags + parts + Arguments{"--steps", "40", "--resume"});
    EXPECT_EQ(found.at("weights_hash"), expected.at("weights_hash"));
    EXPECT_EQ(found.at("test_loss"), expected.at("test_loss"));
    std::filesystem::remove_all(runs / "whole");
    std::filesystem::remove_all(runs / "parts");
  }
}

TEST(AResumedRun, SaysWhichRuleEndedItAndWhichFlagsDiffer) {
  TrainingRuns runs;
  const Arguments flags =
      kSmall + as_words("--epochs 9 --stop-at loss=100 --resume --batch-size 32 --checkpoint-dir",
                        runs / "ck", "--ema");
  runs.train(one_device(), flags + Arguments{"0.9"});
  const ProgramResult again = runs.train(one_device(), flags + Arguments{"0.9"});
  EXPECT_TRUE(contains(again.err, "16 steps are done, and --stop-at loss=100 holds"));
  const ProgramResult other = runs.train(one_device(), flags + Arguments{"0.5"});
  EXPECT_TRUE(contains(other.err, "--ema 0.5 from here on, 0.9 until the checkpoint"));
}

TEST(TheMovingAverage, OfAShortRunHasForgottenTheFirstValues) {
  TrainingRuns runs;
  const Arguments flags = as_words(
      "--model resnet20 --data synthetic:3x8x8:4:512 --batch-size 32 --steps 48 --ema 0.99");
  EXPECT_GT(runs.summary_of(one_device(), flags).at("test_accuracy").get<double>(), 0.9)
      << "0.66 with a decay of 0.99 from the first update on";
}

// Checkpoint 64 is of a step with an evaluation, and 72 of one between two evaluations.
TEST(AResumedRun, DecidesAsOneThatWasNotStopped) {
  const Arguments flags =
      kSmall +
      as_words(
          "--batch-size 32 --learning-rate 0.2 --epochs 8 --checkpoint-every 8 --keep-checkpoints "
          "100 --reduce-on-plateau factor=0.3,patience=1,min-delta=0.3");
  TrainingRuns runs;
  const auto whole =
      runs.summary_of(one_device(), flags + Arguments{"--checkpoint-dir", runs / "whole"});
  EXPECT_LT(runs.lines("step").back().at("learning_rate"), 0.1) << "there was a plateau";
  for (const char* name :
       {"checkpoint-000000000064.safetensors", "checkpoint-000000000072.safetensors"}) {
    const auto folder = runs / name;
    std::filesystem::create_directory(folder);
    std::filesystem::copy(runs / "whole" / name, folder / name);
    const auto rest =
        runs.summary_of(one_device(), flags + Arguments{"--checkpoint-dir", folder, "--resume"});
    EXPECT_EQ(rest.at("weights_hash"), whole.at("weights_hash"));
    EXPECT_EQ(rest.at("test_loss"), whole.at("test_loss"));
  }
}

}  // namespace
}  // namespace syncopate::test
