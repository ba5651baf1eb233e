// Compares 20 rounds of local updates with make_outer_golden.py. It has a program for each method,
// written from the formula of its paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "models/optim/outer_rule.h"
#include "tests/golden/golden_file.h"

namespace syncopate {
namespace {

constexpr std::size_t kRounds = 20;
constexpr std::size_t kWorkers = 3;
constexpr int kSteps = 4;  // per round

// The reason for 1e-5: both sides compute the same formula, in f32 and in f64.
constexpr double kTolerance = 1e-5;

using Block = std::vector<float>;

struct Problem {
  GoldenFile golden =
      read_golden_file(std::filesystem::path(SYNCOPATE_GOLDEN_DIR) / "outer_rules.safetensors");

  Block tensor(const std::string& name) const {
    const std::vector<double>& values = golden.tensors.at(name);
    return {values.begin(), values.end()};
  }
};

// One worker's values after the steps of a round, on a quadratic.
Block train_locally(Block x, std::span<const float> curvature, std::span<const float> centre,
                    float rate) {
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate * curvature[i] * (x[i] - centre[i]);
  }
  return x;
}

// Returns the L2 norm of the difference, divided by the L2 norm of `expected`.
double relative_distance(const Block& found, std::span<const double> expected) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

// Expects the outer values after each round to be near the golden values `name`.
void expect_golden(const std::string& name, const OuterRuleOptions& options) {
  const Problem problem;
  const Block curvature = problem.tensor("curvature");
  const Block centre = problem.tensor("centre");
  const Block rates = problem.tensor("rates");
  const std::vector<double>& samples = problem.golden.tensors.at("samples");
  const std::vector<double>& expected = problem.golden.tensors.at(name);
  Block x = problem.tensor("start");
  const std::size_t n = x.size();
  ASSERT_EQ(expected.size(), kRounds * n);
  const auto rule = make_outer_rule(options);
  std::vector<Block> slots(rule->slot_names().size(), Block(n));
  const std::vector<std::span<float>> spans(slots.begin(), slots.end());
  for (std::size_t r = 0; r < kRounds; ++r) {
    const auto counts = std::span(samples).subspan(r * kWorkers, kWorkers);
    const double total = counts[0] + counts[1] + counts[2];
    Block mean(n);
    for (std::size_t k = 0; k < kWorkers; ++k) {
      const Block own = train_locally(x, std::span(curvature).subspan(k * n, n),
                                      std::span(centre).subspan(k * n, n), rates[r]);
      Block moved(n);
      displacement(moved, x, own, static_cast<float>(counts[k] / total));
      for (std::size_t i = 0; i < n; ++i) mean[i] += moved[i];
    }
    const float before = r == 0 ? 0.0F : rates[r - 1];
    rule->update(outer_step(options, static_cast<std::int64_t>(r + 1), rates[r], before), x, mean,
                 spans, true);
    ASSERT_LT(relative_distance(x, std::span(expected).subspan(r * n, n)), kTolerance)
        << name << ", round " << r + 1;
  }
}

// Expects the values after each push to be near the golden values `name`. Each worker pushes its
// displacement by itself, and goes on from the values after its push.
void expect_golden_pushes(const std::string& name, const OuterRuleOptions& options) {
  const Problem problem;
  const Block curvature = problem.tensor("curvature");
  const Block centre = problem.tensor("centre");
  const float inner_rate = problem.tensor("rates")[5];
  const std::vector<double>& pushes = problem.golden.tensors.at("pushes");
  const std::vector<double>& expected = problem.golden.tensors.at(name);
  Block x = problem.tensor("start");
  const std::size_t n = x.size();
  ASSERT_EQ(expected.size(), pushes.size() * n);
  std::vector<Block> read(kWorkers, x);
  const auto rule = make_outer_rule(options);
  std::vector<Block> slots(rule->slot_names().size(), Block(n));
  const std::vector<std::span<float>> spans(slots.begin(), slots.end());
  for (std::size_t j = 0; j < pushes.size(); ++j) {
    const auto k = static_cast<std::size_t>(pushes[j]);
    const Block own = train_locally(read[k], std::span(curvature).subspan(k * n, n),
                                    std::span(centre).subspan(k * n, n), inner_rate);
    Block moved(n);
    displacement(moved, read[k], own, 1.0F);
    rule->update(outer_step(options, static_cast<std::int64_t>(j + 1), inner_rate, inner_rate), x,
                 moved, spans, true);
    read[k] = x;
    ASSERT_LT(relative_distance(x, std::span(expected).subspan(j * n, n)), kTolerance)
        << name << ", push " << j + 1;
  }
}

TEST(OuterRuleGolden, DelayedNesterovFollowsItsPaper) {
  expect_golden_pushes(
      "delayed-nesterov",
      {.learning_rate = 0.3, .momentum = 0.9, .nesterov = true, .momentum_every = 4});
}

TEST(OuterRuleGolden, AverageIsTheMeanOfTheValuesWeightedBySamples) {
  expect_golden("average", outer_rule_row("average").defaults);
}

TEST(OuterRuleGolden, SlowMoFollowsItsPaperWhileTheInnerRateChanges) {
  expect_golden("slowmo", outer_rule_row("slowmo").defaults);
  expect_golden("slowmo-0.75", {.learning_rate = 0.75, .momentum = 0.7, .scale_by_rate = true});
}

TEST(OuterRuleGolden, DiLoCoFollowsItsPaper) {
  expect_golden("diloco", outer_rule_row("diloco").defaults);
}

}  // namespace
}  // namespace syncopate
