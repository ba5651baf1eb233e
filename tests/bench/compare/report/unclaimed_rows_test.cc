// What a verdict says about rows that cannot be compared: made on a busy machine, with too few
// seeds, with a failed run, or with an accuracy that is not a number.
#include <gtest/gtest.h>

#include <limits>

#include "bench/compare/report/verdict.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

std::string sentences(const Comparison& comparison) {
  std::string text;
  for (const std::string& sentence : verdict(comparison).sentences) text += sentence + "\n";
  return text;
}

// Returns a variant of which no run reached 95 %, around the given final accuracy.
ComparedVariant unreached(const std::string& label, double accuracy, int seeds = 5) {
  ComparedVariant made{label, 2, {}};
  for (int i = 0; i < seeds; ++i) {
    made.runs.push_back(made_up_run(made.runs.size() + 1, {accuracy + 0.001 * (i - 2)}, 0.1));
  }
  return made;
}

ComparedVariant disturbed(ComparedVariant variant, double share = 0.5) {
  variant.runs.front().result->others_cpu_share = share;
  return variant;
}

// Rows that nothing is claimed about are named beside the recommendation, not in it.
TEST(UnclaimedRows, AreNotRecommendedForTheirTime) {
  ComparedVariant sometimes =
      made_up_variant("sometimes", 8, {9, 9, 9, 9}, {.97, .971, .972, .973});
  sometimes.runs.push_back(made_up_run(5, {0.5, 0.6, 0.972}, 0.1));
  sometimes.runs.back().result->curve.pop_back();
  ComparedVariant busy = made_up_variant("busy", 8, kFast, kGood);
  busy.runs[0].result->others_cpu_share = 0.5;
  const Comparison comparison = scaled({made_up_variant("a", 8, kFast, kGood),
                                        made_up_variant("slow", 8, kSlow, kGood), sometimes, busy});
  EXPECT_EQ(verdict(comparison).recommended, std::vector<std::string>{"a"});
  EXPECT_TRUE(contains_words(
      sentences(comparison),
      "; nothing is claimed about the time of sometimes (4 of 5 seeds) and busy (busy "
      "machine)."));
}

TEST(UnclaimedRows, AreNotRecommendedForTheirAccuracy) {
  const Comparison comparison =
      scaled({unreached("a", 0.93), disturbed(unreached("busy", 0.80)), unreached("b", 0.90)});
  EXPECT_EQ(verdict(comparison).recommended, std::vector<std::string>{"a"});
  EXPECT_TRUE(
      contains_words(sentences(comparison),
                     "it ended with the best accuracy of the rows that can be compared "
                     "(93.00 %); nothing is claimed about busy (busy machine). No variant"));
  const std::string few =
      sentences(scaled({unreached("a", 0.93), unreached("few", 0.80, 2), unreached("b", 0.9301)}));
  EXPECT_TRUE(contains_words(few, "93.01 % (b) to 93.00 % (a), cannot be told apart with 5 seeds"));
  EXPECT_TRUE(contains_words(few, "; nothing is claimed about few (2 seeds)."));
}

TEST(UnclaimedRows, AloneHaveNoClaimAboutAccuracy) {
  EXPECT_TRUE(contains_words(
      sentences(scaled({disturbed(unreached("a", 0.93)), disturbed(unreached("b", 0.90), 0.41)})),
      "Nothing is recommended: other programs took up to 50 % of the CPUs, and a claim needs a "
      "quiet machine. No variant reached 95 %"));
  EXPECT_TRUE(contains_words(sentences(scaled({unreached("a", 0.93, 2), unreached("b", 0.90, 2)})),
                             "Nothing is recommended: 2 seeds are too few for a claim about "
                             "accuracy (3 are needed). No variant reached 95 %"));
  const std::string one =
      sentences(scaled({disturbed(unreached("a", 0.93)), unreached("b", 0.90)}));
  EXPECT_TRUE(contains_words(one, "b ended with 90.00 %; nothing is claimed about a (busy"));
  EXPECT_FALSE(contains_words(one, "told apart"));
}

// The row that stands for all with its weights must be one that is tested.
TEST(UnclaimedRows, DoNotStandForATestedRowWithTheSameWeights) {
  const auto hashed = [](ComparedVariant variant) {
    for (ComparedRun& run : variant.runs) {
      run.result->summary.weights_hash = std::to_string(run.result->seed);
    }
    return variant;
  };
  const Rows rows = summarise(scaled({hashed(disturbed(unreached("busy", 0.93))),
                                      hashed(unreached("quiet", 0.93)), unreached("b", 0.90)}));
  EXPECT_TRUE(Claims(rows).is_more_accurate(1, 2));
}

TEST(UnclaimedRows, AreNamedIfARunFailed) {
  ComparedVariant failing = made_up_variant("failing", 8, {9, 10, 11, 12}, {.97, .97, .97, .97});
  failing.runs.push_back(failed_run(5, "worker 2 died"));
  const std::string text = sentences(scaled(
      {made_up_variant("a", 8, kFast, kGood), made_up_variant("slow", 8, kSlow, kGood), failing}));
  EXPECT_TRUE(
      contains_words(text, "it reached 95 % soonest of the rows that can be compared, in "));
  EXPECT_TRUE(contains_words(text, "Left out: failing (1 of 5 runs failed; median 11.0 s)."));
  ComparedVariant accurate = unreached("accurate", 0.94, 4);
  accurate.runs.push_back(failed_run(5, "worker 2 died"));
  accurate.runs.push_back(pending_run());
  EXPECT_TRUE(contains_words(
      sentences(scaled({unreached("a", 0.93), unreached("b", 0.90), accurate})),
      "Left out: accurate (1 of 6 runs failed; 1 of 6 runs not yet trained; final accuracy of the "
      "others 93.95 %)."));
}

TEST(UnclaimedRows, AreSaidToHaveFailedWhereTheTargetIsCounted) {
  const auto failing = [](ComparedVariant variant) {
    variant.runs.back() = failed_run(5, "worker 2 died");
    return variant;
  };
  const Comparison comparison =
      scaled({failing(made_up_variant("a", 8, kFast, kGood)),
              failing(asynchronous(made_up_variant("b", 8, kSlow, kGood)))});
  EXPECT_TRUE(contains_words(sentences(comparison),
                             "a reached 95 % with 4 of 5 seeds (1 failed; median 174 s)"));
  EXPECT_TRUE(contains_words(sentences(comparison),
                             "Nothing is recommended: each variant has a failed run. "));
}

// A row that was fastest on a busy machine does not stand for its kind.
TEST(UnclaimedRows, AreNotTheBestOfTheirKind) {
  const std::string text =
      sentences(scaled({made_up_variant("a", 8, kFast, kGood),
                        disturbed(made_up_variant("busy", 8, {9, 10, 11, 12, 13}, kGood)),
                        asynchronous(made_up_variant("async", 8, kSlow, kGood))}));
  EXPECT_TRUE(
      contains_words(text, "it reached 95 % soonest of the rows that can be compared, in "));
  EXPECT_TRUE(contains_words(text, ": a took 173 s (arithmetic mean), async 3.9x as long ("));
}

TEST(UnclaimedRows, HaveNoShortestTimeOnABusyMachine) {
  const std::vector<double> good = {0.97, 0.971, 0.969};
  const auto fast = made_up_variant("a", 8, {173, 174, 172}, good);
  const auto slow = asynchronous(made_up_variant("b", 8, {676, 680, 672}, good));
  const std::string all = sentences(scaled({disturbed(fast), disturbed(slow)}));
  EXPECT_TRUE(contains_words(all,
                             "Nothing is recommended: other programs took up to 50 % of the CPUs, "
                             "and a claim needs a quiet machine; 3 seeds are too few for a claim "
                             "about time (5 are needed).\n"));
  Comparison slowed = scaled({disturbed(fast), disturbed(slow)});
  slowed.faults = "--link-delay 2ms";
  EXPECT_TRUE(contains_words(sentences(slowed),
                             "(5 are needed); the runs were made with link delay 2ms.\n"));
  EXPECT_TRUE(contains_words(all, "a reached 95 % with 3 of 3 seeds (busy machine); no claim"));
  EXPECT_FALSE(contains_words(all, "median"));
  EXPECT_TRUE(
      contains_words(sentences(scaled({disturbed(fast), slow})),
                     "the shortest median time of the other rows to 95 % was 676 s (b), which "
                     "may be chance."));
}

TEST(UnclaimedRows, HaveNoSpeedUpOnABusyMachine) {
  const Rows rows = summarise(
      scaled({made_up_variant("a", 1, kSlow, kGood), made_up_variant("b", 8, kFast, kGood),
              disturbed(made_up_variant("c", 8, kFast, kGood))}));
  EXPECT_TRUE(speed_up(rows, 0, 1).has_value());
  EXPECT_FALSE(speed_up(rows, 0, 2).has_value());
  EXPECT_FALSE(speed_up(rows, 2, 1).has_value());
}

// An accuracy that is not a number is not one that guessing reaches.
TEST(UnclaimedRows, AreNamedIfAnAccuracyIsNotANumber) {
  ComparedVariant diverged = made_up_variant("diverged", 8, kFast, kGood);
  diverged.runs[2].result->summary.test_metric.value = std::numeric_limits<double>::quiet_NaN();
  Comparison comparison = scaled(
      {made_up_variant("a", 8, kFast, kGood), made_up_variant("b", 8, kSlow, kGood), diverged});
  comparison.chance = Chance{.share = 0.1, .classes = 10, .test_samples = 256};
  const std::string words = "1 of 5 runs ended with an accuracy that is not a number";
  EXPECT_TRUE(contains_words(sentences(comparison), "Left out: diverged (" + words + ")."));
  std::string warned;
  for (const Warning& warning : verdict(comparison).warnings) warned += warning.text + "\n";
  EXPECT_TRUE(contains_words(
      warned, "the final accuracy is not a number in runs of diverged (1 of 5 runs)\n"));
  EXPECT_FALSE(contains_words(warned, "guessing"));
  comparison.variants = {diverged, diverged};
  EXPECT_TRUE(contains_words(sentences(comparison),
                             "each variant has a final accuracy that is not a number."));
}

}  // namespace
}  // namespace syncopate::bench
