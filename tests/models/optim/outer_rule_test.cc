// Tests the outer rules with exact f32 arithmetic, and their special cases.
#include "models/optim/outer_rule.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {
namespace {

using Block = std::vector<float>;

// An outer rule with its slots and the rate of the previous round.
class Outer {
 public:
  Outer(const OuterRuleOptions& options, std::size_t size)
      : options_(options), rule_(make_outer_rule(options)) {
    slots_.assign(rule_->slot_names().size(), Block(size));
  }

  void step(std::span<float> x, std::span<const float> mean, float inner_rate) {
    update(outer_step(options_, ++round_, inner_rate, previous_rate_), x, mean, 0, x.size());
    previous_rate_ = inner_rate;
  }
  // Changes only the elements [begin, end).
  void update(const UpdateStep& step, std::span<float> x, std::span<const float> mean,
              std::size_t begin, std::size_t end) {
    std::vector<std::span<float>> spans;
    for (Block& slot : slots_) spans.push_back(std::span(slot).subspan(begin, end - begin));
    rule_->update(step, x.subspan(begin, end - begin), mean.subspan(begin, end - begin), spans,
                  true);
  }
  const std::vector<Block>& slots() const { return slots_; }

 private:
  OuterRuleOptions options_;
  std::unique_ptr<Optimizer> rule_;
  std::vector<Block> slots_;
  std::int64_t round_ = 0;
  float previous_rate_ = 0.0F;
};

std::vector<std::uint32_t> bits(const Block& block) {
  std::vector<std::uint32_t> bits;
  for (const float value : block) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

// Returns the mean displacement of two workers that minimise (x - 0)^2 / 2 and (x - 4)^2 / 2 in
// two steps of rate 1/2 from x on: each step halves a worker's distance to its minimum.
Block mean_of_two_workers(float x) {
  const std::array<float, 1> start{x};
  const std::array<float, 1> first{x / 4};
  const std::array<float, 1> second{4 + (x - 4) / 4};
  Block mean(1);
  Block moved(1);
  displacement(mean, start, first, 0.5F);
  displacement(moved, start, second, 0.5F);
  mean[0] += moved[0];
  return mean;
}

// The outer values after two rounds that start at 8, by hand. The mean displacement is
// 3/4 (x - 2): 4.5 in the first round.
float after_two_rounds(const OuterRuleOptions& options, float second_inner_rate = 0.5F) {
  Outer outer(options, 1);
  Block x{8.0F};
  outer.step(x, mean_of_two_workers(x[0]), 0.5F);
  outer.step(x, mean_of_two_workers(x[0]), second_inner_rate);
  return x[0];
}

TEST(OuterRule, AveragesTheWorkersExactly) {
  // 8 - 4.5 = 3.5; D = 1.125
  EXPECT_EQ(after_two_rounds({}), 2.375F);
}

TEST(OuterRule, AddsHeavyBallMomentumExactly) {
  // v = 4.5, x = 5.75; D = 2.8125, v = 2.25 + 2.8125 = 5.0625, x = 5.75 - 2.53125
  EXPECT_EQ(after_two_rounds({.learning_rate = 0.5, .momentum = 0.5}), 3.21875F);
}

TEST(OuterRule, LooksAheadWithNesterovMomentumExactly) {
  // v = 4.5, x = 8 - (4.5 + 2.25) / 2 = 4.625
  // D = 1.96875, v = 2.25 + 1.96875 = 4.21875, x = 4.625 - (1.96875 + 2.109375) / 2
  EXPECT_EQ(after_two_rounds({.learning_rate = 0.5, .momentum = 0.5, .nesterov = true}),
            2.5859375F);
}

TEST(OuterRule, ScalesTheMomentumByTheChangeOfTheInnerRate) {
  // v = 4.5, x = 3.5; D = 1.125; the rate falls to a quarter: v = 4.5 / 2 / 4 + 1.125 = 1.6875
  EXPECT_EQ(after_two_rounds({.momentum = 0.5, .scale_by_rate = true}, 0.125F), 1.8125F);
}

TEST(OuterRule, ForgetsTheMomentumOfARoundThatEndsWithRateZero) {
  Outer outer({.momentum = 0.5, .scale_by_rate = true}, 1);
  Block x{8.0F};
  const Block mean{1.0F};
  outer.step(x, mean, 0.5F);
  outer.step(x, mean, 0.0F);  // v = 0 * 1 + 1
  EXPECT_EQ(x[0], 6.0F);
  outer.step(x, mean, 0.5F);  // the rate grows without bound: v = 0 + 1
  EXPECT_EQ(x[0], 5.0F);
}

TEST(OuterRule, LeavesAModelAloneThatNoWorkerMoved) {
  const Block start{-0.0F, 0.0F, -1e-30F, 3.7F};
  for (const OuterRuleRow& row : outer_rules()) {
    Outer outer(row.defaults, start.size());
    Block x = start;
    Block mean(start.size());
    displacement(mean, x, x, 0.3F);
    outer.step(x, mean, 0.0F);
    EXPECT_EQ(bits(x), bits(start)) << row.name;
  }
}

// Returns numbers of either sign and magnitudes from 2^-60 to 1.
Block random_block(std::uint64_t stream, std::size_t size = 1001) {
  const RandomStream random(9, stream);
  Block block(size);
  for (std::size_t i = 0; i < size; ++i) {
    const float magnitude =
        std::ldexp(random.uniform(3 * i), -static_cast<int>(random.below(3 * i + 1, 60)));
    block[i] = random.below(3 * i + 2, 2) == 0 ? magnitude : -magnitude;
  }
  return block;
}

Block after_five_rounds(const OuterRuleOptions& options) {
  Block x = random_block(0);
  Outer outer(options, x.size());
  for (std::uint64_t round = 1; round <= 5; ++round) outer.step(x, random_block(round), 0.1F);
  return x;
}

TEST(OuterRule, GivesTheBitsOfTheAverageWheneverTheNumbersAreThoseOfTheAverage) {
  const auto average = bits(after_five_rounds(outer_rule_row("average").defaults));
  for (OuterRuleOptions options :
       {outer_rule_row("slowmo").defaults, outer_rule_row("diloco").defaults}) {
    EXPECT_NE(bits(after_five_rounds(options)), average);
    options.learning_rate = 1.0;
    options.momentum = 0.0;
    EXPECT_EQ(bits(after_five_rounds(options)), average);
  }
}

TEST(OuterRule, GivesTheBitsOfPlainMomentumWhileTheInnerRateIsConstant) {
  OuterRuleOptions options = outer_rule_row("slowmo").defaults;
  const auto slowmo = bits(after_five_rounds(options));
  options.scale_by_rate = false;
  EXPECT_EQ(bits(after_five_rounds(options)), slowmo);
}

OuterRuleOptions delayed(std::int64_t every) {
  return {.learning_rate = 0.5, .momentum = 0.5, .nesterov = true, .momentum_every = every};
}

TEST(DelayedNesterov, LetsTheMomentumJoinInWithEverySecondDisplacement) {
  Outer outer(delayed(2), 1);
  Block x{8.0F};
  std::vector<float> values;
  for (const float displacement : {4.0F, 2.0F, 4.0F, 0.0F}) {
    outer.step(x, Block{displacement}, 0.1F);
    values.push_back(x[0]);
  }
  // 8 - 4 / 4 = 7; v = (4 + 2) / 2 = 3, 7 - (1 + 1.5) / 2
  // 5.75 - 4 / 4 = 4.75; v = 1.5 + (4 + 0) / 2 = 3.5, 4.75 - 1.75 / 2
  EXPECT_EQ(values, (Block{7.0F, 5.75F, 4.75F, 3.875F}));
}

// Powers of two, so that every operation is exact.
TEST(DelayedNesterov, MakesOneNesterovStepWithTheMeanOfNDisplacements) {
  Block apart{8.0F};
  Block together{8.0F};
  Outer delayed_rule(delayed(4), 1);
  Outer nesterov(delayed(1), 1);
  for (int round = 0; round < 3; ++round) {
    for (const float part : {4.0F, 0.0F, 2.0F, 2.0F}) delayed_rule.step(apart, Block{part}, 0.1F);
    nesterov.step(together, Block{2.0F}, 0.1F);
    EXPECT_EQ(apart, together);
  }
}

TEST(DelayedNesterov, WithOneDisplacementHasTheBitsOfDiLoCo) {
  EXPECT_EQ(bits(after_five_rounds(outer_rule_defaults("delayed-nesterov:1"))),
            bits(after_five_rounds(outer_rule_row("diloco").defaults)));
}

TEST(DelayedNesterov, TakesItsNumberFromTheSetting) {
  EXPECT_EQ(outer_rule_defaults("delayed-nesterov:12").momentum_every, 12);
  EXPECT_EQ(outer_rule_defaults("diloco").momentum_every, 1);
  for (const char* setting : {"delayed-nesterov", "delayed-nesterov:", "delayed-nesterov:0",
                              "delayed-nesterov:x", "delayed-nesterov:2:2", "diloco:2"}) {
    EXPECT_THROW(outer_rule_defaults(setting), UsageError) << setting;
  }
}

TEST(OuterRule, GivesTheSameBitsForSlices) {
  std::vector<OuterRuleRow> rows(outer_rules().begin(), outer_rules().end());
  rows.push_back({.name = "delayed", .help = "", .defaults = delayed(2)});
  for (const OuterRuleRow& row : rows) {
    Block whole = random_block(0);
    Block sliced = whole;
    Outer at_once(row.defaults, whole.size());
    Outer in_slices(row.defaults, whole.size());
    float previous = 0.0F;
    for (std::uint64_t round = 1; round <= 3; ++round) {
      const Block mean = random_block(round);
      const float rate = 0.1F / static_cast<float>(round);
      at_once.step(whole, mean, rate);
      const UpdateStep step =
          outer_step(row.defaults, static_cast<std::int64_t>(round), rate, previous);
      previous = rate;
      std::size_t begin = 0;
      for (const std::size_t end : {1UL, 8UL, 77UL, 500UL, whole.size()}) {
        in_slices.update(step, sliced, mean, begin, end);
        begin = end;
      }
    }
    EXPECT_EQ(bits(sliced), bits(whole)) << row.name;
    for (std::size_t s = 0; s < at_once.slots().size(); ++s) {
      EXPECT_EQ(bits(in_slices.slots()[s]), bits(at_once.slots()[s])) << row.name;
    }
  }
}

TEST(OuterRule, KeepsASlotOnlyForMomentum) {
  EXPECT_TRUE(make_outer_rule({})->slot_names().empty());
  EXPECT_TRUE(make_outer_rule({.momentum = 0.0, .nesterov = true})->slot_names().empty());
  const auto diloco = make_outer_rule(outer_rule_row("diloco").defaults);
  ASSERT_EQ(diloco->slot_names().size(), 1);
  EXPECT_EQ(diloco->slot_names()[0], "outer_momentum");
}

TEST(OuterRule, NeverDecaysWeights) {
  // All parameters decay, and no worker has moved.
  Block x{2.0F};
  Outer outer(outer_rule_row("diloco").defaults, 1);
  outer.step(x, Block{0.0F}, 0.1F);
  EXPECT_EQ(x[0], 2.0F);
}

// Returns the message of the UsageError that the options cause, or "".
std::string refusal(const OuterRuleOptions& options) {
  try {
    make_outer_rule(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(OuterRule, RefusesConstantsOutOfRange) {
  EXPECT_NE(refusal({.momentum_every = 0}).find("expected 1 to"), std::string::npos);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double rate : {0.0, -1.0, kNan, kInfinity}) {
    EXPECT_NE(refusal({.learning_rate = rate}).find("--outer-learning-rate"), std::string::npos);
  }
  for (const double momentum : {-0.1, 1.0, kNan}) {
    EXPECT_NE(refusal({.momentum = momentum}).find("--outer-momentum"), std::string::npos);
  }
  EXPECT_NE(refusal({.momentum = 0.5, .nesterov = true, .scale_by_rate = true})
                .find("--outer-scale-by-rate"),
            std::string::npos);
  EXPECT_EQ(refusal({.momentum = 0.0, .nesterov = true, .scale_by_rate = true}), "");
}

TEST(OuterRule, RefusesAnUnknownNameWithTheListOfNames) {
  try {
    outer_rule_row("sum");
    FAIL() << "expected a UsageError";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("average, post-local, slowmo, diloco"),
              std::string::npos);
  }
}

TEST(Displacement, IsTheWeightedWayFromTheValuesBackToTheStart) {
  Block out(3);
  displacement(out, Block{4.0F, 1.0F, 0.0F}, Block{1.0F, 3.0F, 0.0F}, 0.5F);
  EXPECT_EQ(out, (Block{1.5F, -1.0F, 0.0F}));
  EXPECT_FALSE(std::signbit(out[2]));  // padding stays zero
}

TEST(Displacement, RefusesBlocksOfDifferentSizes) {
  Block out(2);
  EXPECT_THROW(displacement(out, Block(2), Block(3), 1.0F), ShapeError);
  EXPECT_THROW(displacement(out, Block(3), Block(2), 1.0F), ShapeError);
}

}  // namespace
}  // namespace syncopate
