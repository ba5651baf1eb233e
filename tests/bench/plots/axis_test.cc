#include "bench/plots/axis.h"

#include <gtest/gtest.h>

namespace syncopate::bench {
namespace {

using Texts = std::vector<std::string>;

TEST(LinearAxis, MarksRoundNumbers) {
  EXPECT_EQ(tick_texts(linear_axis("", 0.0, 180'000.0, 4, false)),
            (Texts{"0", "50,000", "100,000", "150,000"}));
  EXPECT_EQ(tick_texts(linear_axis("", 0.0, 0.7, 5, false)), (Texts{"0", "0.2", "0.4", "0.6"}));
}

TEST(LinearAxis, ExtendsToTicks) {
  const Axis axis = linear_axis("", 0.3, 9.1, 5, true);
  EXPECT_EQ(axis.low, 0.0);
  EXPECT_EQ(axis.high, 10.0);
  EXPECT_DOUBLE_EQ(axis.place(5.0), 0.5);
}

TEST(LinearAxis, OfOneValueHasExtent) {
  const Axis axis = linear_axis("", 3.0, 3.0, 5, true);
  EXPECT_LT(axis.low, 3.0);
  EXPECT_GT(axis.high, 3.0);
}

TEST(LinearAxis, OfValuesThatDifferByRoundingIsThatOfOneValue) {
  const double mean = 0.09999999999999999;  // of ten times 0.1
  for (const bool extend : {false, true}) {
    const Axis axis = linear_axis("", mean, 0.1, 5, extend);
    EXPECT_LE(axis.ticks.size(), 8U);
    EXPECT_GE(axis.ticks.size(), 2U);
    EXPECT_LT(axis.low, 0.095);
    EXPECT_GT(axis.high, 0.105);
  }
  EXPECT_LE(logarithmic_axis("", mean, 0.1).ticks.size(), 8U);
  EXPECT_LE(fitting_axis("", 1e17, 1e17 + 16.0, 400.0, true).ticks.size(), 8U);
}

TEST(LinearAxis, MarksSmallDifferencesOfLargeValues) {
  const Axis axis = linear_axis("", 1e9, 1e9 + 10.0, 5, false);
  EXPECT_EQ(axis.ticks.size(), 6U);
  EXPECT_EQ(axis.ticks[1] - axis.ticks[0], 2.0);
}

TEST(LogarithmicAxis, AcceptsTheLargestAndSmallestNumbers) {
  EXPECT_LE(logarithmic_axis("", 5e-324, 1.0).ticks.size(), 8U);
  EXPECT_LE(logarithmic_axis("", 1.0, 1.7e308).ticks.size(), 8U);
}

TEST(LogarithmicAxis, MarksOneTwoAndFive) {
  EXPECT_EQ(tick_texts(logarithmic_axis("", 0.03, 1.5)),
            (Texts{"0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"}));
}

TEST(LogarithmicAxis, OfManyDecadesMarksFewPowersOfTen) {
  const Axis axis = logarithmic_axis("", 1e-2, 1e30);
  EXPECT_LE(axis.ticks.size(), 8U);
  EXPECT_DOUBLE_EQ(axis.place(1e14), 0.5);
}

TEST(LogarithmicAxis, IsLinearIfTheRangeIsSmall) {
  EXPECT_EQ(logarithmic_axis("", 1.0, 2.0).scale, Scale::kLinear);
  EXPECT_EQ(logarithmic_axis("", 0.0, 2.0).scale, Scale::kLinear);
}

TEST(LogarithmicTicks, AreMoreWhereTheLimitsAreClose) {
  using Ticks = std::vector<double>;
  EXPECT_EQ(logarithmic_ticks(0.9, 11.0), (Ticks{1, 2, 5, 10}));
  EXPECT_EQ(logarithmic_ticks(1.2, 5.5), (Ticks{1.5, 2, 3, 5}));
  EXPECT_EQ(logarithmic_ticks(1.1, 2.2), (Ticks{1.2, 1.5, 2}));
}

TEST(FittingAxis, MarksAsManyNumbersAsHaveRoom) {
  EXPECT_EQ(tick_texts(fitting_axis("", 0.0, 180'000.0, 400.0)),
            (Texts{"0", "50,000", "100,000", "150,000"}));
  EXPECT_EQ(tick_texts(fitting_axis("", 0.0, 180'000.0, 130.0)), (Texts{"0", "100,000"}));
}

TEST(FittingAxis, MarksWholeNumbersOnRequest) {
  EXPECT_EQ(tick_texts(fitting_axis("", -0.5, 2.5, 400.0, true)), (Texts{"0", "1", "2"}));
}

}  // namespace
}  // namespace syncopate::bench
