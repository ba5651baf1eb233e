#include "bench/harness/measure.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using Values = std::vector<double>;

TEST(Median, IsTheMiddleOfAnOddCountInAnyOrder) { EXPECT_EQ(median(Values{9, 1, 2}), 2.0); }

TEST(Median, LiesBetweenTheTwoMiddleValuesOfAnEvenCount) {
  EXPECT_EQ(median(Values{8, 1, 2, 4}), 3.0);
}

TEST(Median, IsNotMovedByOneValueFarOff) { EXPECT_EQ(median(Values{1, 1e9, 2, 3, 2}), 2.0); }

TEST(Median, OfNoValuesIsABug) { EXPECT_THROW(median({}), InternalError); }

TEST(Percentile, IsTheSmallestValueThatTheShareDoesNotExceed) {
  Values hundred(100);
  for (std::size_t i = 0; i < hundred.size(); ++i) hundred[i] = 100.0 - static_cast<double>(i);
  EXPECT_EQ(percentile(hundred, 0.99), 99.0);
  EXPECT_EQ(percentile(hundred, 1.0), 100.0);
  EXPECT_EQ(percentile(Values{3, 1, 2}, 0.99), 3.0);
  EXPECT_EQ(percentile(Values{3, 1, 2}, 0.5), 2.0);
}

TEST(Spread, NamesTheExtremesBesideTheMedian) {
  const Spread spread = spread_of(Values{5, 3, 4});
  EXPECT_EQ(spread.median, 4.0);
  EXPECT_EQ(spread.min, 3.0);
  EXPECT_EQ(spread.max, 5.0);
}

// Other load slows both compared programs in the second of three rounds. The ratio of the medians
// would be 4 / 2; the ratios within each round are not affected by the slow round.
TEST(Ratio, IsTakenRoundByRound) {
  const Spread ratio = ratio_of(Values{3, 40, 4}, Values{1, 10, 2});
  EXPECT_EQ(ratio.median, 3.0);
  EXPECT_EQ(ratio.min, 2.0);
  EXPECT_EQ(ratio.max, 4.0);
}

TEST(Ratio, NeedsBothSidesOfEveryRound) {
  EXPECT_THROW(ratio_of(Values{1, 2}, Values{1}), InternalError);
}

TEST(QuietRounds, LeaveOutWhatOthersDisturbed) {
  EXPECT_EQ(quiet_rounds(Values{0.01, 0.5, 0.12, 0.0}), (std::vector<std::size_t>{0, 2, 3}));
}

TEST(QuietRounds, AreAllWhenTooFewWouldStay) {
  EXPECT_EQ(quiet_rounds(Values{0.01, 0.5, 0.12, 0.2}), (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(QuietRounds, DetermineWhetherTheNumbersMayBeQuoted) {
  EXPECT_TRUE(is_quiet(Values{0.01, 0.5, 0.12, 0.0}));
  EXPECT_FALSE(is_quiet(Values{0.01, 0.5, 0.12, 0.2}));
  EXPECT_FALSE(is_quiet(Values{0.01, 0.5}));
}

TEST(QuietRounds, SelectEqualRoundsOfEverySide) {
  EXPECT_EQ(select(Values{10, 20, 30}, std::vector<std::size_t>{0, 2}), (Values{10, 30}));
}

}  // namespace
}  // namespace syncopate::bench
