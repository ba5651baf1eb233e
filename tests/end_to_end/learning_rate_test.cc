// Tests --learning-rate-scale and --warmup-epochs by the learning rates in the metrics.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments two_replicas() {
  return {"--strategy", "mirrored", "--replicas", "2", "--share-devices"};
}

// The fixture collects the learning rates of two epochs of ten steps each from the metrics.
class LearningRates : public testing::Test {
 protected:
  std::vector<double> of(const Arguments& flags) const {
    const Arguments common = as_words(
        "train --model mlp --data synthetic:1x8x8:4:640 --optimizer sgd --learning-rate 0.1 "
        "--warmup-epochs 1 --epochs 2 --threads 1 --no-progress --log-every 1 --metrics",
        scratch_ / "m.jsonl");
    const ProgramResult result = successful(run_syncopate(common + flags));
    std::vector<double> rates;
    if (result.exit_code != 0) return rates;
    for (const auto& line : metrics_lines(scratch_ / "m.jsonl", "step")) {
      rates.push_back(line.at("learning_rate"));
    }
    return rates;
  }
  // Expects a learning rate that rises in a straight line over the first epoch and is constant in
  // the second.
  static void expect_climb(const std::vector<double>& rates, double from, double to) {
    ASSERT_EQ(rates.size(), 20U);
    for (std::size_t step = 0; step < rates.size(); ++step) {
      const double part = std::min(1.0, static_cast<double>(step) / 10.0);
      EXPECT_NEAR(rates[step], from + (to - from) * part, 1e-9 * to) << "step " << step + 1;
    }
  }

 private:
  TemporaryFolder scratch_;
};

TEST_F(LearningRates, ScaledLinearlyClimbFromTheUnscaledRate) {
  expect_climb(of(two_replicas() +
                  Arguments{"--batch-size-per-replica", "32", "--learning-rate-scale", "linear"}),
               0.1, 0.2);
}

TEST_F(LearningRates, ScaledByTheSquareRootClimbFromTheUnscaledRate) {
  expect_climb(of(two_replicas() +
                  Arguments{"--batch-size-per-replica", "32", "--learning-rate-scale", "sqrt"}),
               0.1, 0.1 * std::sqrt(2.0));
}

TEST_F(LearningRates, AreScaledByTheReferenceBatchWhereItIsGiven) {
  const Arguments batch = {"--batch-size", "64", "--reference-batch-size", "16"};
  expect_climb(of(batch + Arguments{"--learning-rate-scale", "linear"}), 0.1, 0.4);
  expect_climb(of(two_replicas() + batch + Arguments{"--learning-rate-scale", "sqrt"}), 0.1, 0.2);
}

TEST_F(LearningRates, OfOneReplicaWarmUpFromAHundredthAsWithoutScaling) {
  const Arguments batch = {"--batch-size-per-replica", "64"};
  const std::vector<double> unscaled = of(batch);
  expect_climb(unscaled, 0.001, 0.1);
  EXPECT_EQ(of(batch + Arguments{"--learning-rate-scale", "linear"}), unscaled);
  EXPECT_EQ(of(batch + Arguments{"--learning-rate-scale", "sqrt"}), unscaled);
}

}  // namespace
}  // namespace syncopate::test
