#include "bench/compare/report/verdict.h"

#include <gtest/gtest.h>

#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

testing::AssertionResult says(const std::string& text, const std::string& words) {
  if (text.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << words << "\" is not in: " << text;
}

std::string all_of(const Comparison& comparison) {
  const Verdict said = verdict(comparison);
  return paragraph_of(said.answer) + "\n" + paragraph_of(said.remarks);
}

// Returns one sentence of the verdict: 0 is the recommendation, 1 compares synchronous with
// asynchronous.
std::string sentence(const Comparison& comparison, std::size_t number) {
  const Verdict said = verdict(comparison);
  return number < said.answer.size() ? said.answer[number] : "";
}

const std::vector<double> kSlow = {676, 680, 672};
const std::vector<double> kFast = {173, 174, 172};
const std::vector<double> kGood = {0.972, 0.973, 0.971};
const std::vector<double> kPoor = {0.958, 0.957, 0.959};

ComparedVariant asynchronous(ComparedVariant variant) {
  variant.is_synchronous = false;
  return variant;
}

// Returns the variant marked as one process, or as several that may run on several machines.
ComparedVariant distributed(bool is_distributed, ComparedVariant variant) {
  variant.is_distributed = is_distributed;
  return variant;
}

TEST(Verdict, BeginsWithARecommendation) {
  Comparison comparison = made_up_comparison(
      {made_up_variant("mirrored", 8, kSlow, kGood), made_up_variant("backup", 8, kFast, kGood)});
  comparison.faults = "one worker 4x slower";
  EXPECT_EQ(sentence(comparison, 0),
            "Use backup: with one worker 4x slower, it reached 95 % soonest, in 173 s.");
  EXPECT_EQ(verdict(comparison).recommended, "backup");
  EXPECT_TRUE(says(all_of(comparison),
                   "A time to the target is that of the first evaluation that reached it, and "
                   "evaluations are 86.0 s to 340 s apart."));
  EXPECT_TRUE(says(all_of(comparison),
                   "No final accuracy differs significantly from that of mirrored (97.20 %)."));
}

TEST(Verdict, SaysWhetherSynchronousOrAsynchronousIsBetterAndHowCertainThatIs) {
  // The ratios of times to the target, 676/173, 680/174 and 672/172, are about 3.91. Each time may
  // be up to half as long, as the target was reached between two evaluations. Both accuracies have
  // variance 1e-6, so the half-width is 2.776 * sqrt(2/3) * 0.1 points = 0.23.
  EXPECT_EQ(sentence(made_up_comparison({made_up_variant("mirrored", 8, kSlow, kGood),
                                         asynchronous(made_up_variant("async", 8, kFast, kPoor))}),
                     1),
            "Asynchronous beats synchronous in time to 95 % here: async took 173 s, mirrored 3.9x "
            "as long (95 % interval 1.95x to 7.8x); async had 3.9x the samples/s and 1.40 points "
            "less final accuracy (95 % interval 1.17 to 1.63).");
}

TEST(Verdict, ComparesTheBestOfEachKind) {
  const std::string text = sentence(
      made_up_comparison({made_up_variant("one-device", 1, {1, 1, 1}, kGood),
                          made_up_variant("ring", 8, kFast, kGood),
                          made_up_variant("backup", 8, kSlow, kGood),
                          asynchronous(made_up_variant("async", 8, {900, 901, 902}, kGood)),
                          asynchronous(made_up_variant("ssp", 8, {800, 801, 802}, kGood))}),
      1);
  EXPECT_TRUE(says(text,
                   "Synchronous beats asynchronous in time to 95 % here: ring took 173 s, "
                   "ssp 4.6x as long"));
}

TEST(Verdict, SaysThatADifferenceIsNotSignificant) {
  const Comparison comparison =
      made_up_comparison({made_up_variant("mirrored", 8, {100, 140, 120}, kGood),
                          asynchronous(made_up_variant("async", 8, {95, 135, 115}, kGood))});
  // The logarithms of the ratios of times are 0.0513, 0.0364 and 0.0426: mean 0.0434, half-width
  // 4.303 * 0.0075 / sqrt(3) = 0.0187. The distance between evaluations leaves each ratio uncertain
  // by a factor of 2 in both directions.
  EXPECT_EQ(sentence(comparison, 0),
            "Use async: it reached 95 % soonest, in 115 s; mirrored may be as fast.");
  EXPECT_TRUE(says(sentence(comparison, 1),
                   "Synchronous or asynchronous makes no significant difference in time to 95 % "
                   "here: async took 115 s, mirrored 1.04x as long (95 % interval 0.51x to 2.1x)"));
  EXPECT_TRUE(says(sentence(comparison, 1), "the same final accuracy"));
}

TEST(Verdict, SaysThatSeedsAreTooFew) {
  const auto of_seeds = [](const std::vector<double>& slow, const std::vector<double>& fast) {
    const std::vector<double> good(slow.size(), 0.97);
    const std::vector<double> poor(slow.size(), 0.96);
    return made_up_comparison({made_up_variant("mirrored", 8, slow, good),
                               asynchronous(made_up_variant("async", 8, fast, poor))});
  };
  EXPECT_EQ(sentence(of_seeds({676}, {173}), 0),
            "Use async, on the evidence of one seed: it reached 95 % soonest, in 173 s.");
  EXPECT_EQ(sentence(of_seeds({676}, {173}), 1),
            "One seed is too few to be sure that asynchronous beats synchronous in time to 95 % "
            "here: async took 173 s, mirrored 3.9x as long (1.95x to 7.8x with the one seed); "
            "async had 3.9x the samples/s and 1.00 points less final accuracy (too few seeds to "
            "tell).");
  EXPECT_TRUE(
      says(sentence(of_seeds({676, 680}, {173, 174}), 1), "Two seeds are too few to be sure that"));
  // The ratio of the two variants' times is 10 / 9 with one seed and 10 / 11 with
  // the other, so that each variant wins once.
  EXPECT_TRUE(says(sentence(of_seeds({10, 10}, {9, 10.5}), 1),
                   "Two seeds are too few to tell whether synchronous or asynchronous is better"));
  for (const auto& comparison : {of_seeds({676}, {173}), of_seeds({676, 680}, {173, 174})}) {
    EXPECT_FALSE(says(all_of(comparison), "significant"));
    EXPECT_FALSE(says(all_of(comparison), "95 % interval"));
  }
}

TEST(Verdict, WithFewSeedsNamesOnlyVariantsThatWereAsFastWithOneSeed) {
  // Variant c takes three times as long with both seeds, but two seeds are too few for an interval.
  const std::string text =
      sentence(made_up_comparison({made_up_variant("a", 4, {10, 10.2}, {0.97, 0.97}),
                                   made_up_variant("b", 4, {10.1, 10.1}, {0.97, 0.97}),
                                   made_up_variant("c", 4, {30, 31}, {0.97, 0.97})}),
               0);
  EXPECT_TRUE(says(text, "; b may be as fast."));
}

TEST(Verdict, NamesTheBestVariantOverSeveralMachinesIfOneMachineWins) {
  const Comparison comparison = made_up_comparison(
      {distributed(false, made_up_variant("one-device", 1, {17, 18, 19}, kGood)),
       distributed(false, made_up_variant("mirrored", 8, {20, 21, 22}, kGood)),
       distributed(true, made_up_variant("ring", 8, kFast, kGood)),
       distributed(true, asynchronous(made_up_variant("async", 8, kSlow, kGood)))});
  EXPECT_EQ(sentence(comparison, 2),
            "Over several machines, use ring: of those that can span them it reached 95 % soonest "
            "here, in 173 s, 9.6x as long as one-device.");
  Comparison already = comparison;
  already.variants.erase(already.variants.begin(), already.variants.begin() + 2);
  EXPECT_FALSE(says(all_of(already), "Over several machines"));
}

TEST(Verdict, NamesTheMoreAccurateVariant) {
  const std::string text = all_of(made_up_comparison(
      {made_up_variant("mirrored", 8, kSlow, kGood), made_up_variant("async", 8, kFast, kPoor)}));
  EXPECT_TRUE(says(text,
                   "Where the final accuracy counts more than time, use mirrored: 1.40 points "
                   "more than async (95 % interval 1.17 to 1.63)."));
  EXPECT_TRUE(says(text,
                   "Compared with the final accuracy of mirrored (97.20 %), async lost 1.40 points "
                   "(95 % interval 1.17 to 1.63)"));
}

TEST(Verdict, SaysThatWorkersSharedCpus) {
  Comparison comparison = made_up_comparison(
      {made_up_variant("one-device", 1, kSlow, kGood), made_up_variant("ring", 4, kFast, kGood)});
  comparison.machines = {{.host = "node7", .cpus = 2}};
  comparison.threads_per_worker = 1;
  EXPECT_TRUE(says(all_of(comparison),
                   "4 workers of 1 thread shared 2 CPUs: with a CPU for each thread, times and "
                   "their order may differ."));
  comparison.machines.front().cpus = 4;
  EXPECT_FALSE(says(all_of(comparison), "shared"));
  comparison.machines.front().cpus = 2;
  comparison.has_virtual_clock = true;
  EXPECT_FALSE(says(all_of(comparison), "shared"));
}

TEST(Verdict, DoesNotRecommendAVariantThatIsNoBetterThanGuessing) {
  Comparison comparison =
      made_up_comparison({ComparedVariant{"one-device", 1, {failed_run(1, "diverged")}},
                          ComparedVariant{"async", 4, {made_up_run(1, {0.2, 0.2344}, 0.1)}}});
  // The accuracy of guessing has a standard error of sqrt(0.25 * 0.75 / 256), or 2.706 points.
  comparison.chance = Chance{.share = 0.25, .classes = 4, .test_samples = 256};
  EXPECT_EQ(sentence(comparison, 0),
            "Nothing is recommended: no variant ended above 33.12 %, which guessing may reach (the "
            "most frequent of 4 classes is 25 % of 256 test samples, plus three standard errors).");
  EXPECT_FALSE(verdict(comparison).recommended.has_value());
  comparison.variants.push_back(ComparedVariant{"ring", 4, {made_up_run(1, {0.9, 0.34}, 0.1)}});
  EXPECT_EQ(verdict(comparison).recommended, "ring");
  EXPECT_TRUE(says(all_of(comparison),
                   "async (23.44 %) ended no better than guessing, which may reach "
                   "33.12 %."));
}

// Returns the variant with a worker that was killed after 30 s in every run.
ComparedVariant killed(ComparedVariant variant) {
  for (ComparedRun& run : variant.runs) run.result->faults = {"--kill", "worker=0,at=30s"};
  return variant;
}

TEST(Verdict, SaysWhichFaultsCameAfterTheTarget) {
  Comparison comparison = made_up_comparison({killed(made_up_variant("a", 4, {20}, {0.97})),
                                              killed(made_up_variant("b", 4, {25}, {0.97})),
                                              made_up_variant("one-device", 1, {50}, {0.97})});
  comparison.faults = "--kill worker=0,at=30s";
  EXPECT_FALSE(says(sentence(comparison, 0), "killed"));
  EXPECT_TRUE(
      says(all_of(comparison),
           "No time to the target shows the effect of worker 0 killed at 30s: 95 % was reached "
           "before."));
  comparison.variants[1] = killed(made_up_variant("b", 4, {40}, {0.97}));
  EXPECT_TRUE(says(sentence(comparison, 0), "with worker 0 killed at 30s, "));
  EXPECT_TRUE(
      says(all_of(comparison),
           "The time of a to the target does not show the effect of worker 0 killed at 30s: "
           "95 % was reached before."));
  // The run has 20 s of training and 15 s of evaluations that paused the training.
  for (CurvePoint& point : comparison.variants[0].runs[0].result->curve) {
    point.paused_seconds = 15.0;
  }
  EXPECT_FALSE(says(all_of(comparison), "does not show"));
}

// Returns runs whose last evaluation below the target came at 95 % of the time to the target.
ComparedVariant finely_measured(const std::string& label, const std::vector<double>& seconds) {
  ComparedVariant variant = made_up_variant(label, 4, seconds, {0.97, 0.97, 0.97});
  for (ComparedRun& run : variant.runs) run.result->curve[0].seconds *= 1.9;
  return variant;
}

TEST(Verdict, ComparesTimesSeedBySeedAndAsFactors) {
  // The times to the target differ by up to a factor of three between seeds, and by a quarter
  // between variants. The distance between evaluations adds log(1 / 0.95) on both sides.
  const std::vector<double> first = {10, 20, 30};
  const std::vector<double> second = {12.5, 25, 37.5};
  EXPECT_TRUE(says(sentence(made_up_comparison({finely_measured("a", second),
                                                asynchronous(finely_measured("b", first))}),
                            1),
                   "b took 20.0 s, a 1.25x as long (95 % interval 1.19x to 1.32x)"));
}

TEST(Verdict, DoesNotTellApartTimesWithinTheDistanceOfEvaluations) {
  const Comparison close = made_up_comparison(
      {made_up_variant("a", 4, {10}, {0.97}), made_up_variant("b", 4, {9}, {0.97})});
  EXPECT_TRUE(says(sentence(close, 0), "in 9.00 s; a may be as fast."));
  ComparedVariant at_once = made_up_variant("c", 4, {12, 13, 14}, {0.97, 0.97, 0.97});
  for (ComparedRun& run : at_once.runs) run.result->curve.erase(run.result->curve.begin());
  const Comparison early = made_up_comparison(
      {at_once, asynchronous(made_up_variant("a", 4, {10, 11, 12}, {0.97, 0.97, 0.97}))});
  EXPECT_TRUE(says(sentence(early, 1), "(evaluations are too far apart to tell)"));
}

TEST(Verdict, NamesIdenticalVariants) {
  const auto hashed = [](const std::string& label, const std::vector<double>& seconds) {
    ComparedVariant variant = made_up_variant(label, 4, seconds, {0.97, 0.96});
    for (ComparedRun& run : variant.runs) {
      run.result->summary.weights_hash = "cafe" + std::to_string(run.result->seed);
    }
    return variant;
  };
  const std::string text = all_of(made_up_comparison(
      {hashed("a", {10, 11}), hashed("b", {10, 11}), made_up_variant("c", 4, {50, 51}, kGood)}));
  EXPECT_TRUE(says(text, "a and b ended with the same weights, bit for bit, after the same time."));
  EXPECT_TRUE(says(text, "Use a or b, identical in weights and times, on the evidence"));
  EXPECT_FALSE(says(text, "b 97.00 %")) << "it is a's";
  EXPECT_TRUE(says(all_of(made_up_comparison({hashed("a", {10, 11}), hashed("b", {40, 41})})),
                   "a and b ended with the same weights, bit for bit."));
}

TEST(Verdict, SaysThatBatchesDifferAtOneLearningRate) {
  const auto with_rate = [](const std::string& label, std::int64_t steps, double rate) {
    ComparedVariant variant = made_up_variant(label, 4, kFast, kGood);
    for (ComparedRun& run : variant.runs) {
      run.result->summary.steps = steps;
      run.result->summary.samples = 1200;
      run.result->training.push_back({.learning_rate = rate});
    }
    return variant;
  };
  std::string text =
      all_of(made_up_comparison({with_rate("mirrored", 30, 0.01), with_rate("async", 120, 0.01)}));
  EXPECT_TRUE(
      says(text,
           "With the same learning rate (0.01), mirrored made 30 updates of 40 samples and "
           "async made 120 updates of 10 samples: accuracies may differ for that reason alone"));
  text =
      all_of(made_up_comparison({with_rate("mirrored", 30, 0.04), with_rate("async", 120, 0.01)}));
  EXPECT_FALSE(says(text, "With the same learning rate"));
}

TEST(Verdict, NamesVariantsThatMissedTheTargetOrFailed) {
  ComparedVariant sometimes = made_up_variant("sometimes", 8, {20, 21}, {0.97, 0.97});
  sometimes.runs.push_back(made_up_run(3, {0.5}, 0.1));
  ComparedVariant failing = made_up_variant("failing", 8, {1, 1}, {0.97, 0.97});
  failing.runs.push_back(failed_run(3, "worker 3 fell silent"));
  const std::string text = all_of(made_up_comparison(
      {made_up_variant("mirrored", 8, kSlow, kGood), sometimes, failing,
       ComparedVariant{"never", 8, {made_up_run(1, {0.4}, 0.1), made_up_run(2, {0.5}, 0.1)}},
       ComparedVariant{"later", 8, {pending_run(), pending_run()}}}));
  EXPECT_TRUE(says(text, "Use mirrored: it alone reached 95 % with every seed, in 676 s."));
  EXPECT_TRUE(says(text, "never never reached 95 %."));
  EXPECT_TRUE(says(text, "sometimes reached 95 % with 2 of 3 seeds only."));
  EXPECT_TRUE(says(text, "failing failed 1 time of 3 (seed 3: worker 3 fell silent)."));
  EXPECT_TRUE(says(text, "Still pending: later (2 runs)."));
}

TEST(Verdict, ComparesAccuraciesIfNoVariantReachedTheTarget) {
  const auto variant = [](const std::string& label, const std::vector<double>& accuracies) {
    ComparedVariant made{label, 2, {}};
    for (const double accuracy : accuracies) {
      made.runs.push_back(made_up_run(made.runs.size() + 1, {accuracy}, 0.1));
    }
    return made;
  };
  const Comparison comparison = made_up_comparison(
      {variant("a", {0.91, 0.92, 0.93}), asynchronous(variant("b", {0.92, 0.93, 0.94}))});
  EXPECT_EQ(sentence(comparison, 0),
            "Use b, if one must be chosen: it ended with the best accuracy, 93.00 %, and none "
            "reached 95 % with every seed, which a larger budget may change; a may be as good.");
  EXPECT_EQ(sentence(comparison, 1),
            "Synchronous or asynchronous makes no significant difference in final accuracy here: "
            "b ended at 93.00 %, a at 92.00 %; b had as many samples/s.");
}

TEST(Verdict, SaysThatOnlyOneKindReachedTheTarget) {
  ComparedVariant stuck{"async", 8, {}};
  for (const std::uint64_t seed : {1, 2, 3}) {
    stuck.runs.push_back(made_up_run(seed, {0.5, 0.6}, 1.0));
  }
  EXPECT_TRUE(says(
      sentence(made_up_comparison({made_up_variant("ring", 8, kFast, kGood), asynchronous(stuck)}),
               1),
      "Synchronous beats asynchronous in time to 95 % here: ring took 173 s, and "
      "async, the best that was asynchronous, did not get there with every seed"));
}

TEST(Verdict, NamesTheVirtualClock) {
  Comparison comparison =
      made_up_comparison({made_up_variant("sync", 8, {40, 40}, {0.97, 0.96}),
                          asynchronous(made_up_variant("async", 8, {10, 10}, {0.96, 0.97}))});
  comparison.has_virtual_clock = true;
  comparison.faults = "--service-time exponential:1 --slow worker=7,factor=4";
  EXPECT_EQ(sentence(comparison, 0),
            "Use async, on the evidence of two seeds: under the virtual clock, with compute delay "
            "exponential:1 and worker 7 slowed 4x, it reached 95 % soonest, in 10.0 virtual s.");
  EXPECT_TRUE(says(sentence(comparison, 1), "sync 4.0x as long (2.0x to 8.0x with the two seeds)"));
}

TEST(Verdict, WithoutAResultRecommendsNothing) {
  EXPECT_TRUE(says(all_of(made_up_comparison({ComparedVariant{"a", 1, {failed_run(1, "no")}}})),
                   "Nothing is recommended: no run succeeded."));
  EXPECT_TRUE(says(all_of(made_up_comparison({})), "Nothing is recommended"));
  EXPECT_TRUE(says(all_of(made_up_comparison({made_up_variant("a", 1, kFast, kGood)})),
                   "there is nothing to compare a with"));
}

}  // namespace
}  // namespace syncopate::bench
