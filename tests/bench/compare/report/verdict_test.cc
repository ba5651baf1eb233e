#include "bench/compare/report/verdict.h"

#include <gtest/gtest.h>

#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

testing::AssertionResult says(const std::string& text, const std::string& words) {
  if (text.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << words << "\" is not in: " << text;
}

const std::vector<double> kSlow = {676, 680, 672};
const std::vector<double> kFast = {173, 174, 172};
const std::vector<double> kGood = {0.972, 0.973, 0.971};
const std::vector<double> kPoor = {0.958, 0.957, 0.959};

TEST(Verdict, SaysWhoWasSoonerByHowMuchAndHowSurely) {
  Comparison comparison = made_up_comparison(
      {made_up_variant("mirrored", 8, kSlow, kGood), made_up_variant("backup", 8, kFast, kGood)});
  comparison.trouble = "one worker 4x slower";
  const std::string text = verdict(comparison);
  // Seed by seed 676/173, 680/174 and 672/172 are 3.91 but for thousandths; each time may be half
  // as long, since the target was reached at some time since the evaluation before.
  EXPECT_TRUE(says(text,
                   "With one worker 4x slower, backup reached 95 % in 173 s, 3.9x sooner than "
                   "mirrored (676 s; 95 % interval 1.95x to 7.8x)."));
  EXPECT_TRUE(says(text,
                   "A time is that of the first evaluation at 95 % or above, 86.0 s to 340 s "
                   "after the one before: it is no surer than that."));
  EXPECT_TRUE(says(text,
                   "The final accuracy of backup does not differ significantly from that of "
                   "mirrored (97.20 %)."));
  EXPECT_TRUE(says(text, "Recommended is backup, the soonest at 95 %."));
}

TEST(Verdict, SaysWhatAccuracyWasLost) {
  const std::string text = verdict(made_up_comparison(
      {made_up_variant("mirrored", 8, kSlow, kGood), made_up_variant("async", 8, kFast, kPoor)}));
  // Variances 1e-6 both: reach 2.776 * sqrt(2/3) * 0.1 points = 0.23.
  EXPECT_TRUE(says(text,
                   "Against the final accuracy of mirrored (97.20 %), async lost 1.40 points "
                   "(95 % interval 1.17 to 1.63)."));
  EXPECT_TRUE(says(text,
                   "Recommended is async, the soonest at 95 %; where the final accuracy "
                   "counts more than time, mirrored, 1.40 points better."));
}

TEST(Verdict, ClaimsNoDifferenceThatIsNotSignificant) {
  const std::string text =
      verdict(made_up_comparison({made_up_variant("mirrored", 8, {100, 140, 120}, kGood),
                                  made_up_variant("backup", 8, {95, 135, 115}, kGood)}));
  // Logarithms of the factors 0.0513, 0.0364 and 0.0426: mean 0.0434, reach 4.303 * 0.0075 /
  // sqrt(3) = 0.0187; and a factor of 2 both ways.
  EXPECT_TRUE(says(text,
                   "backup reached 95 % soonest, in 115 s, but not significantly sooner than "
                   "mirrored (120 s; 95 % interval 0.51x to 2.1x)."));
  EXPECT_TRUE(says(text, "mirrored may be as fast for all these runs tell"));
}

TEST(Verdict, OfOneSeedSaysNothingAboutSpread) {
  const std::string text = verdict(made_up_comparison(
      {made_up_variant("mirrored", 8, {676}, {0.97}), made_up_variant("async", 8, {173}, {0.96})}));
  EXPECT_TRUE(says(text, "async reached 95 % in 173 s, 3.9x sooner than mirrored (676 s)."));
  EXPECT_TRUE(says(text, "At the end stood mirrored at 97.00 %, async at 96.00 %."));
  EXPECT_TRUE(says(text, "With one seed nothing can be said about spread"));
  EXPECT_TRUE(says(text, "Recommended, on the evidence of one seed, is async"));
  EXPECT_FALSE(says(text, "significant"));
  EXPECT_FALSE(says(text, "interval"));
}

// Runs whose evaluation before the one at the target came a twentieth of the time earlier.
ComparedVariant finely_measured(const std::string& label, const std::vector<double>& seconds) {
  ComparedVariant variant = made_up_variant(label, 4, seconds, {0.97, 0.97, 0.97});
  for (ComparedRun& run : variant.runs) run.result->curve[0].seconds *= 1.9;
  return variant;
}

TEST(Verdict, ComparesTimesSeedBySeedAndAsFactors) {
  // Seeds differ by a factor of three, variants by a quarter with each of them; log(1 / 0.95) more
  // to both sides.
  const std::vector<double> first = {10, 20, 30};
  const std::vector<double> second = {12.5, 25, 37.5};
  EXPECT_TRUE(
      says(verdict(made_up_comparison({finely_measured("a", second), finely_measured("b", first)})),
           "b reached 95 % in 20.0 s, 1.25x sooner than a (25.0 s; 95 % interval 1.19x to "
           "1.32x)."));
}

TEST(Verdict, DoesNotTellApartWhatEvaluationsDoNot) {
  const std::string text = verdict(made_up_comparison(
      {made_up_variant("a", 4, {10}, {0.97}), made_up_variant("b", 4, {9}, {0.97})}));
  EXPECT_TRUE(says(text,
                   "b reached 95 % soonest, in 9.00 s, but evaluations are too far apart to "
                   "tell it from a (10.0 s)."));
  EXPECT_TRUE(says(text, "a may be as fast for all these runs tell"));
  ComparedVariant at_once = made_up_variant("c", 4, {12, 13}, {0.97, 0.97});
  for (ComparedRun& run : at_once.runs) run.result->curve.erase(run.result->curve.begin());
  const std::string early =
      verdict(made_up_comparison({at_once, made_up_variant("a", 4, {10, 11}, {0.97, 0.97})}));
  EXPECT_TRUE(says(early, "but evaluations are too far apart to tell it from c (12.5 s)."));
}

TEST(Verdict, CallsIdenticalWhatIsIdentical) {
  const auto hashed = [](const std::string& label, const std::vector<double>& seconds) {
    ComparedVariant variant = made_up_variant(label, 4, seconds, {0.97, 0.96});
    for (ComparedRun& run : variant.runs) {
      run.result->weights_hash = "cafe" + std::to_string(run.result->seed);
    }
    return variant;
  };
  const std::string text = verdict(made_up_comparison(
      {hashed("a", {10, 11}), hashed("b", {10, 11}), made_up_variant("c", 4, {50, 51}, kGood)}));
  EXPECT_TRUE(says(text, "a and b ended with the same weights, bit for bit, after the same time."));
  EXPECT_TRUE(says(text,
                   "Recommended is a, the soonest at 95 %, or b, identical in its weights and "
                   "times"));
  EXPECT_TRUE(says(text, "sooner than c")) << "not than b";
  EXPECT_FALSE(says(text, "accuracy of b does not differ"));
  EXPECT_TRUE(says(verdict(made_up_comparison({hashed("a", {10, 11}), hashed("b", {40, 41})})),
                   "a and b ended with the same weights, bit for bit."));
}

TEST(Verdict, NamesTheBudgetAndWhatAnUpdateTook) {
  const auto with_rate = [](const std::string& label, std::int64_t steps, double rate) {
    ComparedVariant variant = made_up_variant(label, 4, kFast, kGood);
    for (ComparedRun& run : variant.runs) {
      run.result->steps = steps;
      run.result->samples = 1200;
      run.result->training.push_back({.learning_rate = rate});
    }
    return variant;
  };
  std::string text =
      verdict(made_up_comparison({with_rate("mirrored", 30, 0.01), with_rate("async", 120, 0.01)}));
  EXPECT_TRUE(says(text, "The budget of a run was 3 epochs of digits."));
  EXPECT_TRUE(says(text,
                   "At one learning rate (0.01) mirrored made 30 updates of 40 samples, async "
                   "120 updates of 10 samples: accuracies may differ for that reason alone"));
  text =
      verdict(made_up_comparison({with_rate("mirrored", 30, 0.04), with_rate("async", 120, 0.01)}));
  EXPECT_FALSE(says(text, "At one learning rate")) << "the user saw to it";
}

TEST(Verdict, NamesWhoNeverReachedTheTargetWhoDidSometimesAndWhoFailed) {
  ComparedVariant sometimes = made_up_variant("sometimes", 8, {20, 21}, {0.97, 0.97});
  sometimes.runs.push_back(made_up_run(3, {0.5}, 0.1));
  ComparedVariant failing = made_up_variant("failing", 8, {1, 1}, {0.97, 0.97});
  failing.runs.push_back(failed_run(3, "worker 3 fell silent"));
  const std::string text = verdict(made_up_comparison(
      {made_up_variant("mirrored", 8, kSlow, kGood), sometimes, failing,
       ComparedVariant{"never", 8, {made_up_run(1, {0.4}, 0.1), made_up_run(2, {0.5}, 0.1)}},
       ComparedVariant{"later", 8, {pending_run(), pending_run()}}}));
  EXPECT_TRUE(says(text, "mirrored reached 95 % in 676 s, the only one to do so with every seed."));
  EXPECT_TRUE(says(text, "never never reached 95 %."));
  EXPECT_TRUE(says(text, "sometimes reached 95 % with 2 of 3 seeds only."));
  EXPECT_TRUE(says(text, "failing failed 1 time of 3 (seed 3: worker 3 fell silent)."));
  EXPECT_TRUE(says(text, "Still pending: later (2 runs)."));
  EXPECT_TRUE(says(text, "Recommended is mirrored"));
}

TEST(Verdict, WhereNobodyReachedTheTargetGoesByAccuracy) {
  const std::string text = verdict(made_up_comparison(
      {ComparedVariant{"a", 1, {made_up_run(1, {0.91}, 0.1), made_up_run(2, {0.92}, 0.1)}},
       ComparedVariant{"b", 1, {made_up_run(1, {0.92}, 0.1), made_up_run(2, {0.93}, 0.1)}}}));
  EXPECT_TRUE(says(text, "No variant reached 95 % with every seed."));
  EXPECT_TRUE(says(text,
                   "By final accuracy alone the choice would be b (92.50 %), though a may be "
                   "as good for all these runs tell; a larger budget"));
}

TEST(Verdict, OfTheVirtualClockWithoutSpreadIsAsSureAsItsEvaluations) {
  Comparison comparison = made_up_comparison({made_up_variant("sync", 8, {40, 40}, {0.97, 0.96}),
                                              made_up_variant("async", 8, {10, 10}, {0.96, 0.97})});
  comparison.has_virtual_clock = true;
  comparison.trouble = "--service-time exponential:1 --slow worker=7,factor=4";
  EXPECT_TRUE(says(verdict(comparison),
                   "Under the virtual clock, with exponential:1 service times and worker 7 slowed "
                   "4x, async reached 95 % in 10.0 s, 4.0x sooner than sync (40.0 s; 95 % interval "
                   "2.0x to 8.0x)."));
}

TEST(Verdict, WithoutAResultRecommendsNothing) {
  EXPECT_TRUE(says(verdict(made_up_comparison({ComparedVariant{"a", 1, {failed_run(1, "no")}}})),
                   "nothing can be said and nothing recommended"));
  EXPECT_TRUE(says(verdict(made_up_comparison({})), "nothing recommended"));
  EXPECT_TRUE(says(verdict(made_up_comparison({made_up_variant("a", 1, kFast, kGood)})),
                   "nothing to compare it with"));
}

}  // namespace
}  // namespace syncopate::bench
