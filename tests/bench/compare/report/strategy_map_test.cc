#include "bench/compare/report/strategy_map.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "bench/compare/report/map_report.h"
#include "bench/compare/report/map_words.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/strategy_names.h"
#include "models/base/errors.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

using Times = std::vector<double>;

// Five runs around a time.
Times around(double seconds) {
  return {0.98 * seconds, 0.99 * seconds, seconds, 1.01 * seconds, 1.02 * seconds};
}

// A comparison of one device, all-reduce and async; the runs reach 95 % around these times.
Comparison made_up_column(double one, double mirrored, double async) {
  Comparison comparison =
      scaled({made_up_variant("one-device", 1, around(one), kGood),
              made_up_variant("multi-worker-mirrored", 8, around(mirrored), kGood),
              asynchronous(made_up_variant("parameter-server:async", 8, around(async), kPoor))});
  comparison.model = "mlp";
  comparison.has_virtual_clock = true;
  comparison.faults = "--service-time constant:1 --link-delay 50us --link-rate 10gbit";
  return comparison;
}

StrategyMap made_up_map() {
  return make_map({"equal", "jitter", "slow-link"},
                  {made_up_column(4.0, 2.0, 2.01), made_up_column(4.0, 3.0, 1.0),
                   made_up_column(1.0, 2.0, 4.0)});
}

TEST(StrategyMap, MarksTheWinnersOfEachCluster) {
  const StrategyMap map = made_up_map();
  const auto states = [&](std::size_t column) {
    std::vector<RowState> all;
    for (const RowOutcome& cell : map.columns[column].cells) all.push_back(cell.state);
    return all;
  };
  using enum RowState;
  EXPECT_EQ(states(0), (std::vector{kReached, kTie, kTie}));
  EXPECT_EQ(states(1), (std::vector{kReached, kReached, kWinner}));
  EXPECT_EQ(states(2), (std::vector{kWinner, kReached, kReached}));
  EXPECT_EQ(map.columns[0].answer.form, AnswerForm::kTie);
  EXPECT_EQ(map.columns[1].answer.form, AnswerForm::kWinner);
  EXPECT_EQ(map.columns[1].answer.winners, (std::vector<std::size_t>{2}));
  EXPECT_EQ(map.columns[1].answer.next, std::optional<std::size_t>(1));
  EXPECT_NEAR(map.columns[1].answer.next_ratio.value, 3.0, 1e-9);
  EXPECT_NEAR(map.columns[1].cells[0].ratio, 4.0, 1e-9);
}

TEST(StrategyMap, SaysWhatToUseOnWhichCluster) {
  const StrategyMap map = made_up_map();
  EXPECT_EQ(
      map_verdict(map),
      "At untuned rates, it depends on the cluster: async on equal workers or with jitter, one "
      "device on a slow link.");
  EXPECT_EQ(map_accuracy(map), "Accuracy: async ended up to 1.4 points below one device.");
  EXPECT_TRUE(contains_words(
      verdict_sentence(map.columns[1]),
      "At untuned rates, use async: it is 3.0 times sooner than the next, all-reduce ("));
}

TEST(StrategyMap, NamesTheSoonerOfTwoRowsThatWinOnTheSameClusters) {
  const StrategyMap map =
      make_map({"equal", "mine"}, {made_up_column(4.0, 2.01, 2.0), made_up_column(8.0, 4.01, 4.0)});
  EXPECT_EQ(map.columns[0].answer.form, AnswerForm::kTie);
  EXPECT_EQ(map_verdict(map), "At untuned rates, use async on both clusters.");
}

TEST(StrategyMap, WarnsOfWhatWentWrongOnOneClusterFirst) {
  Comparison complete = made_up_column(4.0, 2.0, 1.0);
  Comparison broken = made_up_column(4.0, 2.0, 1.0);
  for (Comparison* one : {&complete, &broken}) one->learning_rate_rule = "none";
  const auto warning = [&](const Comparison& second) {
    return map_warning(make_map({"equal", "mine"}, {complete, second})).value_or(Fact{}).text;
  };
  EXPECT_EQ(warning(complete), "one learning rate for all; others may change the order");
  broken.variants[1].runs[0] = failed_run(1, "it broke");
  EXPECT_EQ(warning(broken), "mine: 1 of 15 runs failed or are missing");
}

TEST(StrategyMap, OfOneWinnerSaysSo) {
  const StrategyMap map =
      make_map({"equal", "mine"}, {made_up_column(4.0, 2.0, 1.0), made_up_column(8.0, 2.0, 1.0)});
  EXPECT_EQ(map_verdict(map), "At untuned rates, use async on both clusters.");
}

TEST(StrategyMap, ShowsRunsThatMissedTheTarget) {
  Comparison comparison = made_up_column(4.0, 2.0, 1.0);
  for (std::size_t run = 0; run < 3; ++run) {  // of five
    for (CurvePoint& point : comparison.variants[2].runs[run].result->curve) point.accuracy = 0.5;
  }
  const StrategyMap map = make_map({"equal"}, {std::move(comparison)});
  EXPECT_EQ(map.columns[0].cells[2].state, RowState::kMissed);
  EXPECT_EQ(map.columns[0].cells[2].reached, 2);
  std::ostringstream out;
  print_map(out, map);
  EXPECT_TRUE(contains_words(out.str(), "2 of 5"));
  EXPECT_TRUE(contains_words(map_page(map, ""), ">2 of 5<"));
}

TEST(StrategyMap, OfMissedTargetsHasNoAnswer) {
  Comparison comparison = made_up_column(4.0, 2.0, 1.0);
  for (ComparedVariant& variant : comparison.variants) {
    for (ComparedRun& run : variant.runs) {
      for (CurvePoint& point : run.result->curve) point.accuracy = 0.5;
    }
  }
  const StrategyMap map = make_map({"equal"}, {std::move(comparison)});
  EXPECT_EQ(map.columns[0].answer.form, AnswerForm::kNotReached);
  EXPECT_EQ(answer_words(map.columns[0]).use, "No answer yet");
  EXPECT_EQ(map_verdict(map), "No answer yet: no strategy reached 95 % with all seeds.");
}

TEST(StrategyMap, OfBusyRunsHasNoAnswer) {
  Comparison comparison = made_up_column(4.0, 2.0, 1.0);
  for (ComparedRun& run : comparison.variants[1].runs) run.result->others_cpu_share = 0.5;
  const StrategyMap map = make_map({"equal"}, {std::move(comparison)});
  EXPECT_EQ(map.columns[0].answer.form, AnswerForm::kBusy);
  EXPECT_EQ(map.columns[0].cells[1].state, RowState::kBusy);
}

TEST(StrategyMap, OfFewSeedsIsNotDecided) {
  Comparison comparison = made_up_column(4.0, 2.0, 1.0);
  for (ComparedVariant& variant : comparison.variants) variant.runs.resize(2);
  const StrategyMap map = make_map({"equal"}, {std::move(comparison)});
  EXPECT_EQ(map.columns[0].answer.form, AnswerForm::kNotDecided);
  EXPECT_EQ(map_accuracy(map), "Accuracy: too few seeds to compare (95.8 to 97.2 %).");
}

TEST(StrategyMap, RefusesComparisonsOfOtherVariants) {
  Comparison other = made_up_column(4.0, 2.0, 1.0);
  other.variants.pop_back();
  EXPECT_THROW(make_map({"a", "b"}, {made_up_column(4.0, 2.0, 1.0), std::move(other)}), FileError);
}

// A reader takes the answer in at a glance: 60 words stand above the figure, 30 of them the
// verdict, and 180 in the terminal for four clusters.
TEST(StrategyMap, KeepsToItsBudgetsOfWords) {
  StrategyMap map = make_map({"equal", "jitter", "slow-worker", "slow-link"},
                             {made_up_column(4.0, 2.0, 2.01), made_up_column(4.0, 3.0, 1.0),
                              made_up_column(4.0, 3.0, 1.0), made_up_column(1.0, 2.0, 4.0)});
  EXPECT_LE(count_words(map_verdict(map)), kMostVerdictWords);
  EXPECT_LE(count_words(question_of(map.columns.front()) + " " + map_setting(map) + " " +
                        map_verdict(map) + " " + map_accuracy(map)),
            60U);
  std::ostringstream out;
  print_map(out, map);
  EXPECT_LE(count_words(out.str()), 180U) << out.str();
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(StrategyMap, OfManyClustersCountsThemInItsVerdict) {
  std::vector<std::string> names;
  std::vector<Comparison> comparisons;
  for (int i = 0; i < 9; ++i) {
    names.push_back("a-cluster-of-my-own-" + std::to_string(i));
    comparisons.push_back(i % 3 == 0   ? made_up_column(4.0, 2.0, 1.0)
                          : i % 3 == 1 ? made_up_column(4.0, 1.0, 2.0)
                                       : made_up_column(1.0, 2.0, 4.0));
  }
  const std::string verdict = map_verdict(make_map(names, std::move(comparisons)));
  EXPECT_LE(count_words(verdict), kMostVerdictWords);
}

TEST(Ratio, ShowsOnWhichSideOfOneItLies) {
  EXPECT_EQ(ratio_text(1.0), "1");
  EXPECT_EQ(ratio_text(1.003), "1.003");
  EXPECT_EQ(ratio_text(1.0045), "1.004");
  EXPECT_EQ(ratio_text(0.997), "0.997");
  EXPECT_EQ(ratio_text(1.04), "1.04");
  EXPECT_EQ(ratio_text(1.26), "1.3");
  EXPECT_EQ(ratio_text(9.96), "10");
}

TEST(ShortSeconds, HaveTwoDigitsBelowATenth) {
  EXPECT_EQ(short_seconds(0.0742), "0.074");
  EXPECT_EQ(short_seconds(0.0034), "0.0034");
  EXPECT_EQ(short_seconds(0.264), "0.26");
  EXPECT_EQ(short_seconds(12.34), "12.3");
}

}  // namespace
}  // namespace syncopate::bench
