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
  // 676 - 173 = 503; variances 16 and 1 over 3: 2.258 degrees of freedom, t = 3.867, reach 9.2.
  EXPECT_TRUE(says(text,
                   "With one worker 4x slower, backup reached 95 % in 173 s, 3.9x sooner than "
                   "mirrored (676 s; 95 % interval of the difference 494 to 512 s)."));
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
  // Variances 400 both: reach 2.776 * sqrt(800 / 3) = 45.3.
  EXPECT_TRUE(says(text,
                   "backup reached 95 % soonest, in 115 s, but not significantly sooner than "
                   "mirrored (120 s; 95 % interval of the difference -40.3 to 50.3 s)."));
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

TEST(Verdict, OfTheVirtualClockWithoutSpreadSaysThatSeedsWereAlike) {
  Comparison comparison = made_up_comparison({made_up_variant("sync", 8, {40, 40}, {0.97, 0.96}),
                                              made_up_variant("async", 8, {10, 10}, {0.96, 0.97})});
  comparison.has_virtual_clock = true;
  comparison.trouble = "--service-time exponential:1 --slow worker=7,factor=4";
  EXPECT_TRUE(says(verdict(comparison),
                   "Under the virtual clock, with exponential:1 service times and worker 7 slowed "
                   "4x, async reached 95 % in 10.0 s, 4.0x sooner than sync (40.0 s, the same with "
                   "every seed)."));
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
