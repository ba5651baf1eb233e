#include "models/optim/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Applies an optimizer to one element.
class OneElement {
 public:
  explicit OneElement(const OptimizerOptions& options, float value)
      : optimizer_(make_optimizer(options)),
        slots_(optimizer_->slot_names().size()),
        value_(value) {}

  float step(float gradient, float learning_rate, bool decays = true) {
    std::vector<std::span<float>> spans;
    for (float& slot : slots_) spans.emplace_back(&slot, 1);
    optimizer_->update({.learning_rate = learning_rate, .step = ++steps_}, {&value_, 1},
                       {&gradient, 1}, spans, decays);
    return value_;
  }
  float slot(std::size_t i) const { return slots_.at(i); }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<float> slots_;
  float value_;
  std::int64_t steps_ = 0;
};

TEST(MovingAverage, BeginsWithTheFirstUpdateAndFollowsTheValues) {
  OneElement element({.name = "momentum", .momentum = 0.0, .average_decay = 0.75}, 1.0F);
  element.step(2.0F, 0.25F);  // the value becomes 0.5
  EXPECT_EQ(element.slot(1), 0.5F);
  element.step(-6.0F, 0.25F);  // the value becomes 2
  EXPECT_EQ(element.slot(1), 1.625F) << "the decay is 3/12";
  EXPECT_EQ(element.slot(0), -6.0F) << "the momentum is in a slot of its own";
}

TEST(MovingAverage, DoesNotChangeTheUpdate) {
  for (const OptimizerRow& row : optimizers()) {
    const OptimizerOptions plain{.name = std::string(row.name)};
    OptimizerOptions averaged = plain;
    averaged.average_decay = 0.9;
    OneElement alone(plain, 1.0F);
    OneElement element(averaged, 1.0F);
    for (const float gradient : {0.3F, -0.2F, 0.7F}) {
      EXPECT_EQ(element.step(gradient, 0.1F), alone.step(gradient, 0.1F)) << row.name;
    }
    const auto optimizer = make_optimizer(averaged);
    EXPECT_EQ(optimizer->slot_names().back(), kAverageSlot);
    EXPECT_EQ(optimizer->constants({.step = 1}, true).average_rate, 1.0F);
    EXPECT_EQ(optimizer->constants({.step = 2}, true).average_rate, 0.75F);
    EXPECT_EQ(optimizer->constants({.step = 1000}, true).average_rate, 0.1F);
  }
  EXPECT_THROW(make_optimizer({.name = "sgd", .average_decay = 1.0}), UsageError);
}

TEST(Sgd, SubtractsTheGradientTimesTheRate) {
  OneElement element({.name = "sgd"}, 1.0F);
  EXPECT_EQ(element.step(2.0F, 0.25F), 0.5F);
}

TEST(Sgd, AddsTheDecayToTheGradient) {
  OneElement element({.name = "sgd", .weight_decay = 0.5}, 1.0F);
  EXPECT_EQ(element.step(2.0F, 0.25F), 0.375F);  // the gradient becomes 2 + 0.5 * 1
}

TEST(Momentum, KeepsAnAverageOfGradients) {
  OneElement element({.name = "momentum", .momentum = 0.5}, 1.0F);
  EXPECT_EQ(element.step(2.0F, 0.25F), 0.5F);   // the momentum buffer becomes 2
  EXPECT_EQ(element.step(0.0F, 0.25F), 0.25F);  // the momentum buffer becomes 1
  EXPECT_EQ(element.slot(0), 1.0F);
}

TEST(Momentum, AppliesANewRateToTheWholeBuffer) {
  OneElement element({.name = "momentum", .momentum = 0.5}, 1.0F);
  element.step(2.0F, 0.25F);
  EXPECT_EQ(element.step(0.0F, 0.5F), 0.0F);
}

TEST(Nesterov, AddsTheGradientToTheScaledBuffer) {
  OneElement element({.name = "momentum", .momentum = 0.5, .nesterov = true}, 1.0F);
  EXPECT_EQ(element.step(2.0F, 0.25F), 0.25F);  // the step is 0.25 * (2 + 0.5 * 2)
}

TEST(Adam, TakesAFirstStepOfTheLearningRateForAnyGradient) {
  for (const float gradient : {1e-3F, 1.0F, 1e3F}) {
    OneElement element({.name = "adam"}, 1.0F);
    // The first step of Adam has a relative error of 1e-5: epsilon is 1e-8 and the smallest
    // gradient 1e-3.
    EXPECT_NEAR(element.step(gradient, 0.125F), 0.875F, 1.5e-6F);
  }
}

TEST(Adam, KeepsTheValueForZeroGradients) {
  OneElement element({.name = "adam"}, 1.0F);
  EXPECT_EQ(element.step(0.0F, 0.125F), 1.0F);
}

TEST(AdamW, SubtractsTheDecayFromTheValue) {
  OneElement element({.name = "adamw", .weight_decay = 0.5}, 1.0F);
  EXPECT_EQ(element.step(0.0F, 0.125F), 0.9375F);  // 1 - 0.125 * 0.5
  EXPECT_EQ(element.slot(0), 0.0F);
}

TEST(WeightDecay, IsNotAppliedWhenDecaysIsFalse) {
  for (const OptimizerRow& row : optimizers()) {
    OneElement with({.name = std::string(row.name), .weight_decay = 0.5}, 1.0F);
    OneElement without({.name = std::string(row.name)}, 1.0F);
    EXPECT_EQ(with.step(1.0F, 0.1F, false), without.step(1.0F, 0.1F, true)) << row.name;
  }
}

TEST(Adam, AgreesWithADoublePrecisionLoop) {
  OneElement element({.name = "adam", .weight_decay = 0.01}, 1.0F);
  double value = 1.0;
  double m = 0.0;
  double v = 0.0;
  for (int step = 1; step <= 200; ++step) {
    const auto gradient = static_cast<float>(std::cos(step * 0.1));
    const double g = gradient + 0.01 * value;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    value -= 0.01 * (m / (1.0 - std::pow(0.9, step))) /
             (std::sqrt(v / (1.0 - std::pow(0.999, step))) + 1e-8);
    // The tolerance of 1e-5 covers 200 f32 roundings of 6e-8 each.
    ASSERT_NEAR(element.step(gradient, 0.01F), value, 1e-5) << "step " << step;
  }
}

TEST(Optimizers, NameTheirSlotsAsPyTorchDoes) {
  EXPECT_TRUE(make_optimizer({.name = "sgd"})->slot_names().empty());
  EXPECT_EQ(make_optimizer({.name = "momentum"})->slot_names()[0], "momentum");
  for (const char* name : {"adam", "adamw"}) {
    const auto optimizer = make_optimizer({.name = name});
    ASSERT_EQ(optimizer->slot_names().size(), 2U);
    EXPECT_EQ(optimizer->slot_names()[0], "exp_avg");
    EXPECT_EQ(optimizer->slot_names()[1], "exp_avg_sq");
  }
}

TEST(Optimizers, AreListedInTheErrorForAnUnknownName) {
  EXPECT_TRUE(contains(message_of<UsageError>([&] { make_optimizer({.name = "adan"}); }),
                       "sgd, momentum, adam, adamw"));
}

TEST(Optimizers, RefuseConstantsOutOfRange) {
  EXPECT_THROW(make_optimizer({.name = "momentum", .momentum = 1.0}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "momentum", .momentum = -0.1}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "momentum", .momentum = kNaN}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "adam", .beta1 = 1.0}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "adam", .beta2 = kNaN}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "adam", .epsilon = 0.0}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "sgd", .weight_decay = -1.0}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "sgd", .weight_decay = HUGE_VAL}), UsageError);
  EXPECT_THROW(make_optimizer({.name = "momentum", .momentum = 0.0, .nesterov = true}), UsageError);
}

TEST(Optimizers, RefuseArraysOfUnequalLength) {
  std::array<float, 4> four{};
  std::array<float, 3> three{};
  const auto optimizer = make_optimizer({.name = "momentum"});
  const std::vector<std::span<float>> slots = {four};
  const std::vector<std::span<float>> short_slots = {three};
  EXPECT_NO_THROW(optimizer->update({}, four, four, slots, true));
  EXPECT_THROW(optimizer->update({}, four, three, slots, true), ShapeError);
  EXPECT_THROW(optimizer->update({}, four, four, short_slots, true), ShapeError);
  EXPECT_THROW(optimizer->update({}, four, four, {}, true), ShapeError);
}

TEST(Optimizer, FlushesDenormalAveragesToZero) {
  // Averages must not stay denormal: a unit that no longer learns keeps denormal averages, which
  // make every later step many times slower.
  for (const std::string name : {"momentum", "adam"}) {
    const auto optimizer = make_optimizer({.name = name});
    std::vector<float> value = {1.0F};
    const std::vector<float> gradient = {0.0F};
    std::vector<std::vector<float>> slots(optimizer->slot_names().size(), {1e-39F});
    std::vector<std::span<float>> windows(slots.begin(), slots.end());
    optimizer->update({.learning_rate = 0.1F, .step = 1}, value, gradient, windows, false);
    EXPECT_EQ(slots[0][0], 0.0F) << name;
  }
}

}  // namespace
}  // namespace syncopate
