#include "bench/compare/report/verdict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

std::string all_of(const Comparison& comparison) {
  const Verdict found = verdict(comparison);
  std::string text;
  for (const std::string& sentence : found.sentences) text += sentence + "\n";
  for (const Warning& warning : found.warnings)
    text += warning.subject + ": " + warning.text + "\n";
  return text;
}

// Returns one sentence of the verdict: 0 is the recommendation, 1 compares synchronous with
// asynchronous.
std::string sentence(const Comparison& comparison, std::size_t number) {
  const Verdict found = verdict(comparison);
  return number < found.sentences.size() ? found.sentences[number] : "";
}

// Returns the variant marked as one process, or as several that may run on several machines.
ComparedVariant distributed(bool is_distributed, ComparedVariant variant) {
  variant.is_distributed = is_distributed;
  return variant;
}

TEST(Verdict, RecommendsTheOnlyVariantThatNoOtherEquals) {
  Comparison comparison = scaled(
      {made_up_variant("mirrored", 8, kSlow, kGood), made_up_variant("ring", 8, kFast, kGood)});
  comparison.faults = "one worker 4x slower";
  EXPECT_TRUE(contains_words(
      sentence(comparison, 0),
      "Use ring: with learning rates scaled linearly with the batch, not tuned, with "
      "one worker 4x slower, it reached 95 % soonest, in 173 s (arithmetic mean); mirrored took "
      "3.9x as "
      "long (geometric means, "));
  EXPECT_EQ(verdict(comparison).recommended, std::vector<std::string>{"ring"});
}

TEST(Verdict, RecommendsAllVariantsThatCannotBeToldApartFromTheBest) {
  const Comparison comparison = scaled({made_up_variant("a", 8, {100, 120, 110, 90, 105}, kGood),
                                        made_up_variant("b", 8, {105, 115, 108, 95, 101}, kGood),
                                        made_up_variant("c", 8, kSlow, kGood)});
  // "Use" would recommend a variant that is only not excluded, and "soonest" be wrong of a mean.
  EXPECT_TRUE(contains_words(sentence(comparison, 0), "No single variant is shown best: "));
  EXPECT_TRUE(contains_words(
      sentence(comparison, 0),
      "b had the shortest arithmetic mean time to 95 %, 105 s, and a (105 s) cannot be told apart "
      "from it "
      "with 5 seeds; "
      "a factor of 1.29 would have been seen with a probability of about 80 %; c took longer than "
      "b."));
}

// When a run has reached the target by its first evaluation, it may have done so at any time
// before.
TEST(Verdict, PromisesNoFactorForARowWhoseFirstEvaluationReachedTheTarget) {
  Comparison comparison = scaled({made_up_variant("a", 8, {100, 120, 110, 90, 105}, kGood),
                                  made_up_variant("b", 8, {105, 115, 108, 95, 101}, kGood),
                                  made_up_variant("c", 8, {104, 116, 107, 96, 100}, kGood)});
  for (ComparedRun& run : comparison.variants[2].runs) {
    std::erase_if(run.result->curve, [](const CurvePoint& point) { return point.accuracy < 0.95; });
  }
  EXPECT_TRUE(contains_words(sentence(comparison, 0),
                             "no difference could have been seen where the first evaluation "
                             "reached it"));
  EXPECT_FALSE(contains_words(sentence(comparison, 0), "probability of about 80 %"));
}

TEST(Verdict, SaysWhichRowsTookLongerThanTheFastest) {
  const Comparison comparison = scaled({made_up_variant("a", 8, {60, 160, 100, 80, 120}, kGood),
                                        made_up_variant("b", 8, {105, 106, 104, 105, 106}, kGood),
                                        made_up_variant("c", 8, {125, 126, 124, 125, 126}, kGood)});
  EXPECT_TRUE(contains_words(sentence(comparison, 0), "No single variant is shown best: "));
  EXPECT_TRUE(
      contains_words(sentence(comparison, 0), "; c took longer than at least one of these"));
}

TEST(Verdict, SaysThatSeveralWorkersWereNotFasterThanOne) {
  const auto text = [](const std::vector<double>& of_one_worker) {
    return all_of(
        scaled({made_up_variant("one-device", 1, of_one_worker, kGood),
                made_up_variant("a", 8, kFast, kGood), made_up_variant("b", 8, kSlow, kGood)}));
  };
  const std::string words =
      "No variant with several workers or replicas was shown to reach 95 % sooner than";
  EXPECT_TRUE(contains_words(text(kFast), words + " one-device; a factor of 1.04 over one-device "
                                                  "would have been seen for each of them with a "
                                                  "probability of about 80 %; b took longer than "
                                                  "one-device."));
  EXPECT_FALSE(contains_words(text(kSlow), words)) << "a is faster";
  EXPECT_FALSE(contains_words(text({1, 1.01, 1.02, 1, 1.01}), words)) << "one-device is sooner";
}

// Several workers are compared with each row of one worker; a row with a large deviation is slower
// or faster than none of them.
TEST(Verdict, NamesEachRowOfOneWorkerThatSeveralWorkersDoNotBeat) {
  const auto text = [](const std::vector<double>& of_one_device) {
    return all_of(
        scaled({made_up_variant("one-device", 1, of_one_device, kGood),
                made_up_variant("two-threads", 1, {60, 500, 100, 173, 120}, kGood),
                made_up_variant("a", 8, kFast, kGood), made_up_variant("b", 8, kSlow, kGood)}));
  };
  const std::string words = "was shown to reach 95 % sooner than ";
  const std::string even = text(kFast);
  EXPECT_TRUE(contains_words(even, words + "one-device or two-threads; a factor of 1.04 over "
                                           "one-device and "));
  EXPECT_TRUE(
      contains_words(even,
                     " over two-threads would have been seen for each of them with a "
                     "probability of about 80 %; b took longer than one-device; none was shown "
                     "to take longer than two-threads."));
  EXPECT_TRUE(contains_words(text(kSlow), words + "two-threads; a factor of ")) << "a is sooner";
}

TEST(Verdict, RecommendsNothingIfNoVariantsCanBeToldApart) {
  const Comparison comparison = scaled({made_up_variant("a", 8, {100, 120, 110, 90, 105}, kGood),
                                        made_up_variant("b", 8, {105, 115, 108, 95, 101}, kGood)});
  EXPECT_TRUE(
      contains_words(sentence(comparison, 0),
                     "no variant is recommended over another: arithmetic mean times to 95 %"));
  EXPECT_TRUE(contains_words(sentence(comparison, 0), "would have been seen"));
  EXPECT_TRUE(verdict(comparison).recommended.empty());
}

TEST(Verdict, ComparesSynchronousWithAsynchronous) {
  const Comparison comparison = scaled({made_up_variant("mirrored", 8, kSlow, kGood),
                                        asynchronous(made_up_variant("async", 8, kFast, kPoor))});
  EXPECT_TRUE(contains_words(
      sentence(comparison, 1),
      "With learning rates scaled linearly with the batch, not tuned, the best asynchronous "
      "variant "
      "beats the best synchronous one in time to 95 %: async took 173 s (arithmetic mean), "
      "mirrored 3.9x as long (geometric means, "));
  EXPECT_TRUE(
      contains_words(sentence(comparison, 1), "async ended 1.40 points lower than mirrored ("));
  EXPECT_TRUE(
      contains_words(all_of(comparison),
                     "Where the final accuracy counts more than time, use mirrored: mirrored ended "
                     "1.40 points higher than async ("));
}

TEST(Verdict, NamesAllOfTheMostAccurateRowsThatCannotBeToldApart) {
  const std::string text = all_of(
      scaled({made_up_variant("fast", 8, kFast, kPoor), made_up_variant("a", 8, kSlow, kGood),
              made_up_variant("b", 8, kSlow, {.973, .972, .974, .973, .972})}));
  EXPECT_TRUE(contains_words(text,
                             "Where the final accuracy counts more than time, use b or a: b ended "
                             "1.48 points higher than fast ("));
  EXPECT_TRUE(contains_words(text, "), and a (97.20 %) cannot be told apart from b."));
}

TEST(Verdict, SaysThatTheBestOfEachKindMayDifferInTheirStrategyToo) {
  const auto comparing = [](const std::string& synchronous) {
    return sentence(
        scaled({made_up_variant(synchronous, 8, kSlow, kGood),
                asynchronous(made_up_variant("parameter-server:async", 8, kFast, kGood))}),
        1);
  };
  EXPECT_TRUE(
      contains_words(comparing("mirrored"),
                     "; this includes the difference between parameter-server and mirrored; "));
  EXPECT_FALSE(contains_words(comparing("parameter-server:sync"), "this includes the difference"));
}

TEST(Verdict, ComparesTheBestOfEachKindWithinOneStrategyToo) {
  const auto comparing = [](const std::vector<double>& of_backup, const char* fastest) {
    return sentence(scaled({made_up_variant(fastest, 8, {100, 101, 102, 99, 100}, kGood),
                            made_up_variant("server:sync", 8, {900, 901, 902, 899, 903}, kGood),
                            made_up_variant("server:sync+backup:1", 8, of_backup, kGood),
                            asynchronous(made_up_variant("server:async", 8, kSlow, kGood)),
                            asynchronous(made_up_variant("server:ssp:2", 8, kFast, kGood))}),
                    1);
  };
  EXPECT_TRUE(
      contains_words(comparing({350, 351, 352, 349, 350}, "mirrored"),
                     "; within server, server:sync+backup:1 took 2.0x as long as server:ssp:2 ("));
  EXPECT_TRUE(contains_words(comparing({60, 500, 100, 180, 190}, "mirrored"),
                             "; within server, server:sync+backup:1 and server:ssp:2 cannot be "
                             "told apart in time (the latter took 0.12x to 9.6x as long); "))
      << "the geometric mean of server:sync+backup:1 is the smaller one";
  EXPECT_TRUE(contains_words(
      comparing(kFast, "mirrored"),
      "server:sync+backup:1 and server:ssp:2 took equally long, within a factor of 1.1; "))
      << "the means are equal";
  EXPECT_FALSE(contains_words(comparing(kSlow, "server:sync+x"), "within server,"))
      << "the best of both kinds are of one strategy";
}

TEST(Verdict, SaysWhereTheBestOfEachKindDifferInTheirBatch) {
  const auto with_updates = [](ComparedVariant variant, std::int64_t updates) {
    for (ComparedRun& run : variant.runs) {
      run.result->summary.steps = updates;
      run.result->summary.samples = 64 * 36;
    }
    return variant;
  };
  const std::string text = sentence(
      scaled({with_updates(made_up_variant("mirrored", 8, {100, 101, 102, 99, 100}, kGood), 18),
              with_updates(made_up_variant("server:sync", 8, {350, 351, 352, 349, 350}, kGood), 24),
              with_updates(asynchronous(made_up_variant("server:async", 8, kFast, kGood)), 72)}),
      1);
  EXPECT_TRUE(contains_words(text, "and between updates of 128 and 32 samples; "));
  EXPECT_TRUE(contains_words(text, "), including the difference between updates of 32 and 96 "));
}

TEST(Verdict, DoesNotWriteBeatsAtOneUnscaledLearningRate) {
  Comparison comparison = scaled({made_up_variant("mirrored", 8, kSlow, kGood),
                                  asynchronous(made_up_variant("async", 8, kFast, kPoor))});
  for (ComparedVariant& variant : comparison.variants) {
    for (ComparedRun& run : variant.runs) run.result->training.push_back({.learning_rate = 0.01});
  }
  for (const char* rule : {"none", ""}) {
    comparison.learning_rate_rule = rule;
    EXPECT_FALSE(contains_words(all_of(comparison), "beats")) << rule;
    EXPECT_TRUE(contains_words(sentence(comparison, 0), "at one learning rate, 0.01, not tuned, "))
        << rule;
    EXPECT_TRUE(
        contains_words(sentence(comparison, 1),
                       "At one learning rate, 0.01, not tuned, in time to 95 %, async took 173 s"));
  }
}

TEST(Verdict, ComparesTheBestOfEachKind) {
  const std::string text = sentence(
      scaled({made_up_variant("one-device", 1, {1, 1.01, 1.02, 1, 1.01}, kGood),
              made_up_variant("ring", 8, kFast, kGood), made_up_variant("backup", 8, kSlow, kGood),
              asynchronous(made_up_variant("async", 8, {900, 901, 902, 899, 903}, kGood)),
              asynchronous(made_up_variant("ssp", 8, {800, 801, 802, 799, 803}, kGood))}),
      1);
  EXPECT_TRUE(contains_words(text,
                             "the best synchronous variant beats the best asynchronous one in time "
                             "to 95 %: ring took 173 s (arithmetic mean), ssp 4.6x"));
}

TEST(Verdict, SaysEqualOnlyWhereTheIntervalLiesWithinTheMargin) {
  const std::vector<double> near = {100, 100.1, 99.9, 100.05, 99.95};
  EXPECT_TRUE(
      contains_words(sentence(scaled({made_up_variant("mirrored", 8, near, kGood),
                                      asynchronous(made_up_variant("async", 8, near, kGood))}),
                              1),
                     "took equally long to 95 %, within a factor of 1.1: "));
  const std::vector<double> wide = {100, 140, 120, 90, 110};
  const std::string text =
      sentence(scaled({made_up_variant("mirrored", 8, wide, kGood),
                       asynchronous(made_up_variant("async", 8, wide, kGood))}),
               1);
  EXPECT_TRUE(contains_words(text, "cannot be told apart in time to 95 % with 5 seeds"));
  EXPECT_FALSE(contains_words(text, "equally"));
}

TEST(Verdict, ClaimsNothingAboutTimeWithFewerThanFiveSeeds) {
  const std::vector<double> good = {0.97, 0.971, 0.969};
  Comparison comparison =
      scaled({made_up_variant("mirrored", 8, {676, 680, 672}, good),
              asynchronous(made_up_variant("async", 8, {173, 174, 172}, good))});
  EXPECT_TRUE(
      contains_words(sentence(comparison, 0),
                     "Nothing is recommended: 3 seeds are too few for a claim about time (5 are "
                     "needed); with learning rates scaled linearly with the batch, not tuned, the "
                     "shortest median time to 95 % was 173 s (async), which may be chance."));
  EXPECT_TRUE(contains_words(
      sentence(comparison, 1),
      "async reached 95 % with 3 of 3 seeds (median 173 s) and mirrored reached 95 % "
      "with 3 of 3 seeds (median 676 s); no claim about time is made"));
  EXPECT_TRUE(contains_words(all_of(comparison), "few seeds: 3 seeds"));
  EXPECT_TRUE(verdict(comparison).recommended.empty());
}

// A run that missed the target is censored. The times of the others would be too good.
TEST(Verdict, PrintsCountsAndMediansWhereARunMissedTheTarget) {
  ComparedVariant sometimes = made_up_variant("async", 8, {20, 21, 22, 23}, {.97, .97, .97, .97});
  sometimes.runs.push_back(made_up_run(5, {0.5, 0.6, 0.9}, 0.1));
  const Comparison comparison =
      scaled({made_up_variant("mirrored", 8, kSlow, kGood), asynchronous(sometimes)});
  EXPECT_TRUE(contains_words(
      sentence(comparison, 1),
      "async reached 95 % with 4 of 5 seeds (median 22.0 s) and mirrored reached 95 % "
      "with 5 of 5 seeds (median 676 s); no claim about time is made (Fisher's exact "
      "test of these counts alone: p = 1)"));
  EXPECT_FALSE(contains_words(all_of(comparison), "beats"));
  EXPECT_FALSE(contains_words(all_of(comparison), "alone reached"));
  EXPECT_TRUE(contains_words(all_of(comparison),
                             "target missed: 95 % was reached by async with 4 of 5 seeds"));
}

TEST(Verdict, ExcludesARowThatMissedTheTargetOnlyIfItEndedLessAccurate) {
  ComparedVariant stuck{"async", 8, {}};
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    stuck.runs.push_back(
        made_up_run(seed, {0.5, 0.6, 0.6 + 0.001 * static_cast<double>(seed)}, 1.0));
  }
  const Comparison comparison =
      scaled({made_up_variant("ring", 8, kFast, kGood), asynchronous(stuck)});
  EXPECT_TRUE(contains_words(sentence(comparison, 0), "Use ring: "));
  EXPECT_TRUE(contains_words(sentence(comparison, 0),
                             "it reached 95 % with every seed, in 173 s (arithmetic mean); async "
                             "missed 95 % and ended less accurate."));
}

TEST(Verdict, ClaimsNothingFromRowsThatOtherProgramsDisturbed) {
  Comparison comparison = scaled({made_up_variant("mirrored", 8, kSlow, kGood),
                                  asynchronous(made_up_variant("async", 8, kFast, kPoor))});
  comparison.variants[1].runs[2].result->others_cpu_share = 0.41;
  EXPECT_TRUE(verdict(comparison).recommended.empty());
  EXPECT_FALSE(contains_words(all_of(comparison), "beats"));
  EXPECT_FALSE(contains_words(all_of(comparison), " ended 1.40 points"));
  EXPECT_TRUE(contains_words(
      all_of(comparison),
      "busy machine: other programs took up to 41 % of the CPUs during runs of async"));
}

TEST(Verdict, NamesTheBestVariantOverSeveralMachinesIfOneMachineWins) {
  Comparison comparison = scaled(
      {distributed(false, made_up_variant("one-device", 1, {17, 18, 17.5, 18.5, 16.5}, kGood)),
       distributed(true, made_up_variant("ring", 8, kFast, kGood)),
       distributed(true, asynchronous(made_up_variant("async", 8, kSlow, kGood)))});
  EXPECT_TRUE(contains_words(all_of(comparison),
                             "Of the variants that can span several machines, ring was soonest on "
                             "this one machine (173 s); for several machines, compare with "
                             "--link-delay, or use plan."));
  comparison.faults = "--link-delay 1ms";
  EXPECT_TRUE(contains_words(all_of(comparison),
                             "Of the variants that can span several machines, use ring (173 s)."));
  Comparison already = comparison;
  already.variants.erase(already.variants.begin());
  EXPECT_FALSE(contains_words(all_of(already), "several machines, use"));
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
  comparison.variants.push_back(ComparedVariant{"ring", 4, {made_up_run(1, {0.9, 0.34}, 0.1)}});
  EXPECT_TRUE(contains_words(all_of(comparison),
                             "no learning: async (23.44 %) ended no better than guessing"));
}

TEST(Verdict, ComparesAccuraciesIfNoVariantReachedTheTarget) {
  const auto variant = [](const std::string& label, double accuracy) {
    ComparedVariant made{label, 2, {}};
    for (const double step : {-0.002, -0.001, 0.0, 0.001, 0.002}) {
      made.runs.push_back(made_up_run(made.runs.size() + 1, {accuracy + step}, 0.1));
    }
    return made;
  };
  const Comparison comparison =
      scaled({variant("a", 0.90), asynchronous(variant("b", 0.93)), variant("c", 0.9301)});
  EXPECT_TRUE(contains_words(sentence(comparison, 0), "Use c or b: "));
  EXPECT_TRUE(contains_words(sentence(comparison, 0), "No variant reached 95 % with every seed"));
  EXPECT_EQ(verdict(comparison).recommended, (std::vector<std::string>{"c", "b"}));
}

TEST(Verdict, WithoutAResultRecommendsNothing) {
  EXPECT_TRUE(
      contains_words(all_of(made_up_comparison({ComparedVariant{"a", 1, {failed_run(1, "no")}}})),
                     "Nothing is recommended: no run succeeded."));
  EXPECT_TRUE(contains_words(all_of(made_up_comparison({})), "Nothing is recommended"));
  EXPECT_TRUE(contains_words(all_of(made_up_comparison({made_up_variant("a", 1, kFast, kGood)})),
                             "there is nothing to compare a with"));
}

TEST(Verdict, DoesNotCompareTheOnlyVariantThatLearned) {
  EXPECT_TRUE(
      contains_words(sentence(scaled({made_up_variant("a", 8, kFast, kGood),
                                      ComparedVariant{"b", 8, {failed_run(1, "it broke")}}}),
                              0),
                     "not tuned, only a has complete results that are better than guessing."));
}

TEST(Verdict, TellsTimesWithoutAnySpreadApart) {
  // Ten pairs of equal times, whose logarithms have means that round in different ways.
  for (const double seconds : {0.131, 0.35, 0.449, 1.1, 1.7, 2.3, 7.0, 11.3, 101.7, 676.1}) {
    const Comparison comparison =
        scaled({made_up_variant("a", 8, std::vector<double>(5, seconds), kGood),
                made_up_variant("b", 8, std::vector<double>(5, 3.4 * seconds), kGood)});
    EXPECT_EQ(verdict(comparison).recommended, std::vector<std::string>{"a"}) << seconds;
  }
}

TEST(Verdict, DoesNotTakeEqualAccuraciesOfFewSeedsForProof) {
  const std::vector<double> seconds = {10, 11, 12};
  Comparison comparison = scaled({made_up_variant("a", 8, seconds, {0.96, 0.96, 0.96}),
                                  made_up_variant("b", 8, seconds, {0.964, 0.964, 0.964})});
  EXPECT_FALSE(Claims(summarise(comparison)).is_more_accurate(1, 0));
}

TEST(Verdict, ClaimsNoTimesOfSeveralMachines) {
  Comparison comparison =
      scaled({made_up_variant("a", 8, kFast, kGood), made_up_variant("b", 8, kSlow, kGood)});
  comparison.machines = {{.host = "node7", .cpus = 64}, {.host = "node8", .cpus = 64}};
  EXPECT_TRUE(verdict(comparison).recommended.empty());
  EXPECT_TRUE(contains_words(all_of(comparison), "several machines: "));
  EXPECT_EQ(sentence(comparison, 0),
            "Nothing is recommended: times of several machines cannot be compared.");
}

TEST(Verdict, DoesNotWriteBeatsWhereRatesFollowSeveralRules) {
  Comparison comparison = scaled({made_up_variant("mirrored", 8, kSlow, kGood),
                                  asynchronous(made_up_variant("async", 8, kFast, kPoor))});
  comparison.learning_rate_rule = "mixed";
  EXPECT_FALSE(contains_words(all_of(comparison), "beats"));
  EXPECT_TRUE(contains_words(all_of(comparison), "with learning rates chosen by several rules, "));
}

class VerdictFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(dir_); }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  const std::filesystem::path dir_ =
      std::filesystem::temp_directory_path() / ("syncopate_verdict_" + std::to_string(getpid()));
};

TEST_F(VerdictFile, HasTheLatestVerdictAndItsNumbers) {
  std::ofstream(dir_ / "comparison.json") << R"({"clock":"real","variants":[]})";
  const Comparison comparison = scaled(
      {made_up_variant("a", 8, kSlow, kGood), asynchronous(made_up_variant("b", 8, kFast, kPoor))});
  keep_verdict(dir_, comparison, {.sentences = {"Use a."}, .warnings = {}, .recommended = {"a"}});
  keep_verdict(dir_, comparison, verdict(comparison));
  std::ifstream in(dir_ / "comparison.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(contains_words(text, "\"recommended\": [\n    \"b\"\n  ]"));
  EXPECT_TRUE(contains_words(text, "\"measure\": \"log_time\""));
  EXPECT_TRUE(contains_words(text, "\"claimed\": true"));
  EXPECT_TRUE(contains_words(text, "\"name\": \"a\",\n      \"samples_to_target\": 200.0,\n"));
  // Holm's procedure tests the first of two pairs at half of 5 %.
  EXPECT_TRUE(contains_words(text, "\"level\": 0.025,"));
  EXPECT_FALSE(contains_words(text, "Use a."));
  EXPECT_NO_THROW(read_comparison(dir_));
}

}  // namespace
}  // namespace syncopate::bench
