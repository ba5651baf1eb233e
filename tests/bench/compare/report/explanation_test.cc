#include <gtest/gtest.h>

#include <string>

#include "bench/compare/report/verdict.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

TEST(Explanation, NamesTheVariantsWithEqualWeights) {
  const auto hashed = [](const std::string& label) {
    ComparedVariant variant = made_up_variant(label, 4, kFast, kGood);
    for (ComparedRun& run : variant.runs) {
      run.result->summary.weights_hash = "cafe" + std::to_string(run.result->seed);
    }
    return variant;
  };
  Comparison comparison = scaled({hashed("a"), hashed("b"), made_up_variant("c", 4, kSlow, kGood)});
  comparison.model = "mlp";
  const std::string text = explanation(comparison, summarise(comparison), "+-");
  EXPECT_TRUE(contains_words(text,
                             "a and b ended with the same weights, bit for bit, and count as one "
                             "row in accuracy."));
  // One pair in accuracy, and three in time.
  EXPECT_TRUE(contains_words(text, "in accuracy and in time (4 tests), all in one family"));
  EXPECT_TRUE(contains_words(text, "are not those of MNIST."));
  EXPECT_TRUE(contains_words(text, "mlp, 3 epochs of digits per run; n = 5 seeds per row"));
  EXPECT_TRUE(contains_words(text, "the last, shorter batch of an epoch is not trained"));
  EXPECT_FALSE(contains_words(text, "ssp"));
  EXPECT_FALSE(contains_words(text, "Staleness"));
}

// Lets the runs of seed 1 begin first, in the order of the variants, then those of seed 2.
void begin_in_order(Comparison& comparison) {
  for (std::size_t row = 0; row < comparison.variants.size(); ++row) {
    double at = 100.0 + static_cast<double>(row);
    for (ComparedRun& run : comparison.variants[row].runs) {
      run.result->began_at = at;
      at += 10.0;
    }
  }
}

TEST(Explanation, SaysWhatTheColumnsCount) {
  ComparedVariant stale = asynchronous(made_up_variant("server:ssp:2", 2, kFast, kGood));
  for (ComparedRun& run : stale.runs) run.result->summary.staleness.emplace_back();
  Comparison comparison = scaled({made_up_variant("one-device", 1, kFast, kGood), stale,
                                  made_up_variant("server:sync+backup:1", 2, kSlow, kGood)});
  comparison.machines = {{.cpus = 2}};
  comparison.threads_per_worker = 1;
  begin_in_order(comparison);
  const std::string text = explanation(comparison, summarise(comparison), "+-");
  EXPECT_TRUE(contains_words(text, "The first row used 1 of 2 CPUs."));
  EXPECT_TRUE(contains_words(text, "Staleness: updates of the servers' values between"));
  EXPECT_TRUE(contains_words(text, "staleness in updates may be larger."));
  EXPECT_TRUE(contains_words(
      text, " updates, samples and samples/s count only the gradients that were used;"));
  EXPECT_TRUE(contains_words(text,
                             "The runs of seed 1 were made first, in the order of the table, then "
                             "those of the next seed, and so on."));
  // The second row's runs of seeds 1 and 3 were made at the end.
  comparison.variants[1].runs[0].result->began_at = 2000.0;
  comparison.variants[1].runs[2].result->began_at = 2010.0;
  EXPECT_TRUE(contains_words(explanation(comparison, summarise(comparison), "+-"),
                             "and so on; but 2 of 15 were made later, or again, as"));
  for (ComparedVariant& variant : comparison.variants) {
    for (ComparedRun& run : variant.runs) run.result->seed += 6;
  }
  EXPECT_TRUE(contains_words(explanation(comparison, summarise(comparison), "+-"),
                             "The runs of seed 7 were made first"));
  comparison.variants[1].runs[0].result->began_at.reset();
  EXPECT_FALSE(contains_words(explanation(comparison, summarise(comparison), "+-"), "made first"));
}

TEST(Explanation, NamesRowsWithAWarmUpAndTheShareOfOtherPrograms) {
  Comparison comparison = scaled({made_up_variant("one-device", 1, kFast, kGood),
                                  made_up_variant("mirrored", 2, kSlow, kGood)});
  const auto text = [&] { return explanation(comparison, summarise(comparison), "+-"); };
  for (ComparedVariant& variant : comparison.variants) variant.learning_rate = 0.1;
  EXPECT_FALSE(contains_words(text(), "warm-up."));
  EXPECT_FALSE(contains_words(text(), "Other programs"));
  for (ComparedRun& run : comparison.variants[1].runs) run.result->warmup_updates = 20;
  comparison.variants[0].runs[1].result->others_cpu_share = 0.0457;
  EXPECT_TRUE(contains_words(text(),
                             "The rate rises over the first 20 updates (warm-up) of mirrored. "
                             "The other rows have no warm-up."));
  EXPECT_TRUE(contains_words(text(), "Other programs took up to 4.6 % of the CPUs during a run; "));
}

// The runs differ by less than the 2 % of the time between two evaluations.
TEST(Explanation, SaysWhatTheDistanceBetweenEvaluationsAddsAndWhatReducesIt) {
  const auto of = [](const std::vector<double>& seconds) {
    const Comparison comparison =
        scaled({made_up_variant("a", 1, kSlow, kGood), made_up_variant("b", 8, seconds, kGood)});
    return explanation(comparison, summarise(comparison), "+-");
  };
  const std::string advice =
      " More --evaluations reduce this part; more seeds do not. It counts as independent";
  const std::string steady = of(kFast);
  EXPECT_TRUE(contains_words(steady, " % of the variance of a difference." + advice)) << steady;
  const std::string varied = of({100, 200, 140, 90, 170});
  EXPECT_TRUE(contains_words(
      varied, "same weights. It is 0 % of the variance of a difference. It counts as"));
}

TEST(Explanation, SaysTheLevelsOfTheIntervalsAndWhichMeansAreArithmetic) {
  const auto of = [](const Comparison& comparison) {
    return explanation(comparison, summarise(comparison), "+-");
  };
  // Two pairs, in accuracy and in time, of which the second is tested at all of 5 %.
  const std::string text =
      of(scaled({made_up_variant("a", 1, kFast, kGood), made_up_variant("b", 8, kSlow, kPoor)}));
  EXPECT_TRUE(contains_words(text, "at the level at which it was tested, 95 % to 97.5 %, and"));
  EXPECT_TRUE(contains_words(text, "samples/s are arithmetic means, so their order may differ."));
  const std::string alike =
      of(scaled({made_up_variant("a", 1, kFast, kGood), made_up_variant("b", 8, kFast, kGood)}));
  EXPECT_TRUE(contains_words(alike, "at the level at which it was tested, 97.5 %, and"));
  const std::string alone = of(scaled({made_up_variant("a", 1, kFast, kGood)}));
  EXPECT_TRUE(contains_words(alone, "No pair of rows was tested. Times begin"));
  EXPECT_FALSE(contains_words(alone, "Holm"));
}

}  // namespace
}  // namespace syncopate::bench
