#include "bench/compare/report/facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/compare/report/outcome_words.h"
#include "bench/plots/text.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

// Returns the text of the first fact with this subject; "" if there is none.
std::string fact(const Comparison& comparison, const std::string& subject) {
  const std::vector<Fact> facts = facts_of(outcome_of("", comparison));
  const auto found = std::ranges::find(facts, subject, &Fact::subject);
  return found == facts.end() ? "" : found->text;
}

Comparison two_variants() {
  return scaled(
      {made_up_variant("a", 2, kSlow, kGood), asynchronous(made_up_variant("b", 2, kFast, kGood))});
}

TEST(Facts, CountMissingRunsAndAccuraciesThatAreNoNumbers) {
  Comparison comparison = two_variants();
  comparison.variants[0].runs[0] = failed_run(1, "it broke");
  comparison.variants[0].runs[1] = pending_run();
  for (CurvePoint& point : comparison.variants[1].runs[2].result->curve) point.accuracy = NAN;
  EXPECT_EQ(fact(comparison, "incomplete"), "2 of 10 runs failed or are missing");
  EXPECT_EQ(fact(comparison, "diverged"), "the accuracy of 1 of 10 runs is not a number");
}

TEST(Facts, NameASlowSeedOfTheMachineInSeveralRows) {
  Comparison comparison = two_variants();
  for (ComparedVariant& variant : comparison.variants) {
    variant.runs[3].result->summary.samples_per_second *= 0.8;
  }
  EXPECT_EQ(fact(comparison, "uneven"), "with seed 4 the machine was 20 % slower");
  comparison.has_virtual_clock = true;
  EXPECT_EQ(fact(comparison, "uneven"), "");
}

TEST(Facts, NameARowOfUnsteadySpeed) {
  Comparison comparison = two_variants();
  comparison.variants[1].runs[3].result->summary.samples_per_second *= 1.8;
  EXPECT_TRUE(contains_words(fact(comparison, "unsteady"), "runs of b had "));
}

TEST(Facts, NameFaultsThatCameAfterTheTarget) {
  Comparison comparison = two_variants();
  comparison.faults = "--pause worker=0,at=200s,for=1s --slow worker=1,factor=4";
  for (ComparedVariant& variant : comparison.variants) {
    for (ComparedRun& run : variant.runs) {
      run.result->faults = {"--pause", "worker=0,at=200s,for=1s", "--slow", "worker=1,factor=4"};
    }
  }
  EXPECT_EQ(fact(comparison, "late fault"),
            "--pause worker=0,at=200s,for=1s came after 1 of 2 variants had reached the target");
}

TEST(Facts, NameTheRatesAndTheirWarmUp) {
  Comparison comparison = two_variants();
  EXPECT_EQ(fact(comparison, "rates"), "") << "unknown";
  comparison.variants[0].learning_rate = 0.1;
  comparison.variants[1].learning_rate = 0.1;
  comparison.variants[1].learning_rate_factor = 8.0;
  comparison.variants[1].runs[0].result->warmup_updates = 20;
  for (ComparedRun& run : comparison.variants[1].runs) run.result->summary.steps = 200;
  EXPECT_EQ(
      fact(comparison, "rates"),
      "0.1 (a) and 0.8 (b; rises over 20 updates, 10 % of the run and 15 % of the samples to "
      "95 %). They change during a run only with --lr-schedule and where they rise. The time "
      "while a rate rises counts as training time; only rates that were multiplied for larger "
      "updates rise, linearly");
  EXPECT_EQ(fact(comparison, "not tuned"),
            "rates follow the batch only; others may change the order");
  comparison.learning_rate_rule = "given";
  EXPECT_EQ(fact(comparison, "not tuned"), "");
}

TEST(Facts, NameTheServersAndTheDrawnStepTimes) {
  Comparison comparison = two_variants();
  EXPECT_FALSE(contains_words(fact(comparison, "resources"), "Servers"));
  comparison.variants[1].servers = 2;
  EXPECT_TRUE(contains_words(fact(comparison, "resources"), "Servers: 2 (b)"));
  comparison.has_virtual_clock = true;
  comparison.faults = "--service-time exponential:1";
  EXPECT_TRUE(contains_words(fact(comparison, "clock"),
                             "(--service-time exponential:1): 1 ms on average, exponentially "
                             "distributed."));
}

TEST(Facts, SayWhetherTheAnswerNeedsDipsBelowTheTarget) {
  Comparison comparison = two_variants();
  comparison.learning_rate_rule = "given";
  EXPECT_EQ(fact(comparison, "spikes"), "");
  for (ComparedRun& run : comparison.variants[1].runs) {
    std::vector<CurvePoint>& curve = run.result->curve;
    curve.push_back(curve.back());
    curve.back().accuracy = 0.5;
  }
  const std::vector<Fact> facts = facts_of(outcome_of("", comparison));
  EXPECT_TRUE(contains_words(fact(comparison, "spikes"), "the answer depends on this"));
  const auto last = std::ranges::find(facts.rbegin(), facts.rend(), "spikes", &Fact::subject);
  ASSERT_NE(last, facts.rend());
  EXPECT_TRUE(contains_words(verdict_sentence(outcome_of("", comparison)), "Use b:"));
  EXPECT_TRUE(contains_words(last->text,
                             "If all later evaluations had to be at the target, the answer would "
                             "be: Not decided: the runs of b ended after "))
      << last->text;
}

TEST(Facts, SayHowManySamplesLieBetweenEvaluations) {
  Comparison comparison = two_variants();
  EXPECT_TRUE(contains_words(fact(comparison, "times"), "are 100 samples apart, by variant"))
      << fact(comparison, "times");
  for (ComparedRun& run : comparison.variants[1].runs) {
    for (CurvePoint& point : run.result->curve) point.samples *= 3;
  }
  EXPECT_TRUE(contains_words(fact(comparison, "times"), "are 100 to 300 samples apart"))
      << fact(comparison, "times");
}

TEST(Facts, DescribeTheNetworkTheDataAndTheOptimizer) {
  Comparison comparison = two_variants();
  comparison.model = "net";
  comparison.network_layers = "dense [10]; 7,850 parameters";
  comparison.data = "mine";
  comparison.data_hash = "1234";
  comparison.train_samples = 60000;
  comparison.variants[0].update_flags =
      "--learning-rate 0.1 --momentum 0.9 --weight-decay 0 --clip-norm absent";
  comparison.variants[1].update_flags = "--learning-rate 0.2 --momentum 0.5 --weight-decay 0";
  EXPECT_TRUE(contains_words(fact(comparison, "network"), "net: dense [10]; 7,850 parameters; "));
  EXPECT_EQ(fact(comparison, "data"), "mine; 60,000 training samples; hash of all samples 1234");
  EXPECT_EQ(fact(comparison, "optimizer"),
            "--clip-norm absent --weight-decay 0; --momentum 0.5 (b) and --momentum 0.9 (a). Where "
            "there are servers, "
            "they make the update of the variables");
}

TEST(Facts, StateHowExactTheTimesToTheTargetAre) {
  Comparison comparison = two_variants();
  const auto times = [&] { return fact(comparison, "times"); };
  EXPECT_FALSE(contains_words(times(), "standard error")) << "the samples are unknown";
  comparison.chance = Chance{.share = 0.1, .classes = 10, .test_samples = 1900};
  EXPECT_TRUE(contains_words(times(), "a standard error of 0.50 points")) << times();  // 0.95 0.05
  EXPECT_FALSE(contains_words(times(), "half way")) << "gaps are equal parts of the times";
  // Row b is at the target after 400 s, and 100 s later.
  for (ComparedRun& run : comparison.variants[1].runs) {
    std::vector<CurvePoint>& curve = run.result->curve;
    curve.back().seconds = 500.0;
    curve[curve.size() - 2].seconds = 400.0;
    curve[curve.size() - 2].accuracy = 0.94;
  }
  // w is log(1 / 0.98) of a and log(5 / 4) of b.
  EXPECT_TRUE(contains_words(times(), "by a factor of up to 1.11")) << times();
}

TEST(Facts, BoundTheDifferencesOfAccuraciesByTheirIntervals) {
  const Comparison comparison = two_variants();
  const Outcome outcome = outcome_of("", comparison);
  const auto pair = outcome.claims.difference(0, 1, Measure::kAccuracy);
  ASSERT_TRUE(pair.has_value());
  const double most = std::max(-pair->interval().low, pair->interval().high);
  EXPECT_TRUE(contains_words(fact(comparison, "accuracy"),
                             "By the intervals of all pairs, no two variants differ by more than " +
                                 decimal_text(std::ceil(10000.0 * most) / 100.0, 2) + " points"))
      << fact(comparison, "accuracy");
}

TEST(Facts, DivideTheDifferenceIntoSpeedAndSamples) {
  Comparison comparison = two_variants();
  EXPECT_TRUE(contains_words(fact(comparison, "parts"),
                             "b trained 3.9 times as many samples per second as a, and needed 1 "
                             "times as many samples to 95 %."))
      << fact(comparison, "parts");
  for (ComparedRun& run : comparison.variants[1].runs) {
    for (CurvePoint& point : run.result->curve) point.samples *= 3;
  }
  EXPECT_TRUE(contains_words(fact(comparison, "parts"), "and needed 3.0 times as many samples"))
      << fact(comparison, "parts");
  comparison.variants.pop_back();
  EXPECT_EQ(fact(comparison, "parts"), "") << "there is no other row";
}

TEST(Facts, CountAnAccuracyThatEqualsAnotherTarget) {
  Comparison comparison = two_variants();
  comparison.target_accuracy = 0.93;
  for (ComparedVariant& variant : comparison.variants) {
    for (ComparedRun& run : variant.runs) {
      for (CurvePoint& point : run.result->curve) {
        if (point.accuracy >= 0.93) point.accuracy = 0.95;
      }
    }
  }
  EXPECT_TRUE(contains_words(fact(comparison, "targets"), "95 %: \"Use b: "))
      << fact(comparison, "targets") << "; 0.93 + 0.02 > 0.95";
}

// Row b is the soonest at 95 %, and takes long to the next evaluation.
TEST(Facts, SayTheAnswersWithHigherTargetsThatAllRowsReach) {
  Comparison comparison = two_variants();
  for (ComparedRun& run : comparison.variants[1].runs) run.result->curve.back().seconds *= 20.0;
  const std::string text = fact(comparison, "targets");
  EXPECT_TRUE(contains_words(text, "96 %: \"No difference found: ")) << text;
  EXPECT_TRUE(contains_words(text, "97 %: \"No difference found: ")) << text;
  EXPECT_FALSE(contains_words(text, "98 %:")) << text;
  EXPECT_TRUE(contains_words(text, "; a took 0.2 times as long as b\"")) << text;
  EXPECT_FALSE(contains_words(text, "tuned")) << text;
  for (ComparedRun& run : comparison.variants[0].runs) run.result->curve.back().accuracy = 0.955;
  EXPECT_EQ(fact(comparison, "targets"), "") << "row a does not reach 96 %";
}

TEST(Facts, WarnThatFreeMessagesFavourAsynchronousVariants) {
  Comparison comparison = two_variants();
  EXPECT_EQ(fact(comparison, "simulated"), "") << "real messages take time";
  comparison.has_virtual_clock = true;
  EXPECT_EQ(fact(comparison, "simulated"), "free messages favour async");
  comparison.faults = "--link-rate 1gbit --service-time exponential:1";
  EXPECT_EQ(fact(comparison, "simulated"), "random step times favour async");
  comparison.faults = "--costs message=0.1";
  EXPECT_EQ(fact(comparison, "simulated"), "");
}

// Each of 2 workers sends 12 kB in 8 steps.
TEST(Facts, NameTheRoundsAndTheBytesOfLocalUpdates) {
  Comparison comparison = two_variants();
  EXPECT_EQ(fact(comparison, "rounds"), "");
  EXPECT_EQ(fact(comparison, "bytes"), "");
  ComparedVariant& local = comparison.variants[1];
  local.steps_in_round = 64;
  local.outer_step = "diloco: learning rate 0.7, Nesterov momentum 0.9";
  EXPECT_TRUE(contains_words(fact(comparison, "rounds"),
                             "b: 64 steps in a round, outer step diloco: learning rate 0.7, "
                             "Nesterov momentum 0.9. The number of steps and the outer step were "
                             "given, not tuned"));
  EXPECT_FALSE(contains_words(fact(comparison, "rounds"), "helps one worker"));
  local.has_outer_optimizer = true;
  EXPECT_TRUE(contains_words(fact(comparison, "rounds"), "helps one worker, too"));
  for (ComparedRun& run : local.runs) {
    run.result->times = {{.worker = 0, .steps = 8, .bytes_sent = 12'000},
                         {.worker = 1, .steps = 8, .bytes_sent = 12'000}};
  }
  EXPECT_EQ(fact(comparison, "bytes"), "sent by a worker per step, on average: 1.5 kB (b)");
}

TEST(Facts, NameRowsThatAreEqual) {
  Comparison comparison =
      scaled({made_up_variant("a", 2, kFast, kGood), made_up_variant("b", 2, kFast, kGood)});
  EXPECT_EQ(fact(comparison, "equal"), "") << "the weights are unknown";
  for (ComparedVariant& variant : comparison.variants) {
    for (ComparedRun& run : variant.runs) run.result->summary.weights_hash = "h";
  }
  EXPECT_TRUE(contains_words(fact(comparison, "equal"), "a and b had the same weights"));
}

TEST(Facts, NameVariantsNoBetterThanGuessing) {
  Comparison comparison = two_variants();
  comparison.variants.push_back(made_up_variant("c", 2, kFast, {0.1, 0.1, 0.1, 0.1, 0.1}));
  comparison.chance = {.share = 0.1, .classes = 10, .test_samples = 10'000};
  EXPECT_EQ(fact(comparison, "guessing"),
            "1 of 3 variants ended no better than guessing, up to 10.9 %");
}

// A comparison that has every reason for doubt at once.
TEST(ShownWarnings, AreThreeOfFifteenWords) {
  Comparison comparison = two_variants();
  comparison.machines = {{.host = "node7", .cpus = 2}, {.host = "node8", .cpus = 2}};
  comparison.threads_per_worker = 2;
  comparison.faults = "--kill worker=0,at=5s";
  comparison.variants[0].runs[0] = failed_run(1, "it broke");
  comparison.variants[1].runs[3].result->summary.samples_per_second *= 1.8;
  comparison.variants[1].runs[2].result->curve.back().accuracy = 0.5;
  const Outcome outcome = outcome_of("", comparison);
  EXPECT_EQ(shown_warnings(outcome).size(), 3U);
  EXPECT_EQ(shown_warnings(outcome).front().subject, "incomplete");
  int warnings = 0;
  for (const Fact& one : facts_of(outcome)) {
    EXPECT_FALSE(one.text.ends_with(".")) << one.text;
    if (!one.is_warning) continue;
    ++warnings;
    EXPECT_LE(count_words(one.text), 15U) << one.text;
  }
  EXPECT_GT(warnings, 5);
}

}  // namespace
}  // namespace syncopate::bench
