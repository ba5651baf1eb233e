// Tests the answer of a comparison on scenarios with a known winner.
#include "bench/compare/report/outcome.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/terminal_report.h"
#include "tests/bench/compare/report/made_up.h"
#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

using Seconds = std::vector<double>;

// Five runs around a time, one percent apart.
Seconds runs_of(double seconds) {
  return {0.98 * seconds, 0.99 * seconds, seconds, 1.01 * seconds, 1.02 * seconds};
}

ComparedVariant all_reduce(double seconds) {
  return made_up_variant("multi-worker-mirrored", 8, runs_of(seconds), kGood);
}
ComparedVariant one_device(double seconds) {
  return made_up_variant("one-device", 1, runs_of(seconds), kGood);
}
ComparedVariant backup(double seconds) {
  return made_up_variant("parameter-server:sync+backup:1", 8, runs_of(seconds), kGood);
}
ComparedVariant async(double seconds) {
  return asynchronous(made_up_variant("parameter-server:async", 8, runs_of(seconds), kGood));
}
ComparedVariant ssp(double seconds) {
  return asynchronous(made_up_variant("parameter-server:ssp:3", 8, runs_of(seconds), kGood));
}

Outcome of(std::vector<ComparedVariant> variants) {
  Comparison comparison = scaled(std::move(variants));
  comparison.model = "mlp";
  comparison.has_virtual_clock = true;
  return outcome_of("", std::move(comparison));
}

TEST(Outcome, WithOneWinnerNamesItAndTheNext) {
  const Outcome outcome = of({all_reduce(3.0), async(1.0), ssp(1.5)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kWinner);
  EXPECT_TRUE(
      contains_words(verdict_sentence(outcome),
                     "At untuned rates, use async: it is 1.5 times sooner than the next, ssp:3 ("));
}

TEST(Outcome, WithTiedWinnersOfOneKindComparesThemWithTheOther) {
  const Outcome outcome = of({all_reduce(3.0), backup(2.0), async(1.0), ssp(1.001)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kTie);
  EXPECT_TRUE(contains_words(verdict_sentence(outcome),
                             "At untuned rates, use async or ssp:3 (a tie): async is 2.0 times "
                             "sooner than the soonest sync, "
                             "1 backup worker ("));
}

TEST(Outcome, WithTiedWinnersOfBothKindsNamesBoth) {
  const Outcome outcome = of({all_reduce(3.0), backup(1.0), async(1.001)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kTie);
  EXPECT_TRUE(
      contains_words(verdict_sentence(outcome),
                     "use 1 backup worker or async (a tie): 1 backup worker is 3.0 times sooner "
                     "than the next, all-reduce ("));
}

TEST(Outcome, WithoutADifferenceSaysWhatTheSeedsCanShow) {
  const std::vector<double> noisy = {0.7, 0.9, 1.0, 1.2, 1.4};
  const Outcome outcome =
      of({made_up_variant("multi-worker-mirrored", 8, noisy, kGood),
          asynchronous(made_up_variant("parameter-server:async", 8, noisy, kGood))});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kNoDifference);
  const std::string verdict = verdict_sentence(outcome);
  EXPECT_TRUE(contains_words(verdict,
                             "At untuned rates, no difference found: both took about 1.01 s, and "
                             "five seeds can show a factor of"));
  const std::optional<int> needed = outcome.answer.seeds_needed;
  ASSERT_TRUE(needed);
  EXPECT_TRUE(contains_words(verdict, "; 1.2 needs about " + std::to_string(*needed) + "."));
  EXPECT_GT(*needed, 5);
}

TEST(Outcome, WithAMissedTargetNamesTheOnlyRowThatReachedIt) {
  const Outcome outcome = of({all_reduce(1.0), reaching(async(1.0), 0)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kMissed);
  EXPECT_EQ(
      verdict_sentence(outcome),
      "At untuned rates, use all-reduce: it reached 95 % with every seed, the others with none.");
}

// One run in five may miss it by chance: the log-rank test has p = 1.
TEST(Outcome, WithOneMissedRunIsNotDecided) {
  const Outcome outcome = of({all_reduce(1.0), reaching(async(1.0), 4)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kNotDecided);
}

TEST(Outcome, OfThreeSeedsIsNotDecided) {
  std::vector<ComparedVariant> variants = {all_reduce(2.0), async(1.0)};
  for (ComparedVariant& variant : variants) variant.runs.resize(3);
  const Outcome outcome = of(std::move(variants));
  EXPECT_EQ(verdict_sentence(outcome),
            "Not decided: async was first, but 3 seeds cannot show a difference.");
  EXPECT_EQ(next_sentence(outcome), "Next: --seeds 5 with the same --report.");
}

// Five runs far apart, with a geometric mean of this time.
Seconds scattered(double seconds) {
  return {seconds / 4.0, seconds / 2.0, seconds, 2.0 * seconds, 4.0 * seconds};
}

// The soonest row is too scattered to be told from any other, but the second is sooner than the
// third.
TEST(Outcome, ComparesTheNextRowWithTheWinnerThatIsShownSooner) {
  const Outcome outcome =
      of({made_up_variant("a", 8, scattered(0.9), kGood), async(1.0), all_reduce(1.5)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kTie);
  EXPECT_EQ(outcome.answer.winners, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(outcome.answer.next, 2U);
  EXPECT_EQ(outcome.answer.reference, 1U);
  EXPECT_TRUE(contains_words(verdict_sentence(outcome),
                             "use async: it is 1.5 times sooner than all-reduce"));
  EXPECT_TRUE(contains_words(verdict_sentence(outcome), "; a was not shown to be slower."));
}

TEST(Outcome, SaysThatAWinnerIsOneOfTheCompleteVariants) {
  std::vector<ComparedVariant> variants = {all_reduce(3.0), async(1.0), ssp(0.1)};
  variants[2].runs[4] = pending_run();
  const Outcome outcome = of(std::move(variants));
  EXPECT_EQ(outcome.answer.form, AnswerForm::kWinner);
  EXPECT_EQ(outcome.cells[2].state, RowState::kPending);
  EXPECT_TRUE(contains_words(verdict_sentence(outcome), "), of the complete variants."));
}

// Two of five runs may miss it by chance: such a row is not shown to take longer.
TEST(Outcome, SaysThatAWinnerIsOneOfTheVariantsThatAlwaysReachedTheTarget) {
  const Outcome outcome = of({all_reduce(3.0), async(1.0), reaching(ssp(1.0), 3)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kWinner);
  EXPECT_FALSE(outcome.answer.are_misses_shown);
  EXPECT_TRUE(contains_words(verdict_sentence(outcome), "), of those without misses."));
}

// The most accurate row is too scattered to be told from any other.
TEST(Outcome, SaysWhichRowEndedLessAccurateThanAnyOther) {
  const Outcome outcome =
      of({made_up_variant("a", 8, runs_of(1.0), {0.999, 0.96, 0.999, 0.95, 0.999}), all_reduce(1.0),
          asynchronous(made_up_variant("parameter-server:async", 8, runs_of(1.0), kPoor))});
  EXPECT_EQ(accuracy_losses(outcome).best, 1U);
  EXPECT_EQ(accuracy_losses(outcome).below, (std::vector<std::size_t>{2}));
}

TEST(Outcome, NeedsNoMoreSeedsThanThoseThatShowAFactorOf12) {
  const Seconds seconds = {0.92, 0.96, 1.0, 1.04, 1.08};
  const Outcome outcome = of({made_up_variant("a", 8, seconds, kGood),
                              asynchronous(made_up_variant("b", 8, seconds, kGood))});
  ASSERT_EQ(outcome.answer.form, AnswerForm::kNoDifference);
  ASSERT_TRUE(outcome.answer.detectable);
  EXPECT_LE(*outcome.answer.detectable, 1.2);
  EXPECT_FALSE(outcome.answer.seeds_needed);
}

// Rows that are equal bit for bit are equal, not undecided.
TEST(Outcome, OfEqualRowsAloneIsEqual) {
  std::vector<ComparedVariant> variants = {async(1.0), ssp(1.0)};
  for (ComparedVariant& variant : variants) {
    for (ComparedRun& run : variant.runs) run.result->summary.weights_hash = "h";
  }
  EXPECT_EQ(of(std::move(variants)).answer.form, AnswerForm::kEqual);
}

// Each row is told why there is no answer, and no state of the runs breaks a sentence.
TEST(Outcome, NamesTheReasonWhyNothingIsDecided) {
  const auto why = [](std::vector<ComparedVariant> variants) {
    const Outcome outcome = of(std::move(variants));
    EXPECT_EQ(outcome.answer.form, AnswerForm::kNotDecided);
    EXPECT_TRUE(std::ranges::none_of(
        outcome.cells, [](const RowOutcome& cell) { return cell.state == RowState::kWinner; }));
    std::ostringstream out;
    print_outcome(out, outcome);
    print_explanation(out, outcome);
    return answer_words(outcome).why;
  };
  const auto ending = [](ComparedVariant variant, const ComparedRun& last) {
    variant.runs.back() = last;
    return variant;
  };
  EXPECT_EQ(why({async(1.0)}), "there is one variant alone");
  EXPECT_EQ(why({ending(async(1.0), pending_run()), ending(ssp(1.0), pending_run())}),
            "no variant has all of its runs yet");
  EXPECT_EQ(why({ending(async(1.0), failed_run(5, "x")), ending(ssp(1.0), failed_run(5, "x"))}),
            "no variant ended well");
  EXPECT_EQ(why({async(1.0), ending(ssp(1.0), failed_run(5, "x"))}),
            "only one variant has all of its runs");
  Comparison comparison = scaled({async(1.0), ssp(2.0)});
  comparison.machines = {{.host = "a"}, {.host = "b"}};
  EXPECT_EQ(answer_words(outcome_of("", comparison)).why,
            "times of several machines are not compared");
  comparison.target_accuracy.reset();
  EXPECT_EQ(answer_words(outcome_of("", comparison)).why, "there is no target accuracy");
}

TEST(Outcome, SaysThatRunsEndedBeforeTheOthersReachedTheTarget) {
  const Outcome outcome = of({all_reduce(30.0), reaching(async(1.0), 0)});
  EXPECT_EQ(outcome.answer.form, AnswerForm::kNotDecided);
  EXPECT_TRUE(
      contains_words(verdict_sentence(outcome), "Not decided: the runs of async ended after"));
  EXPECT_TRUE(contains_words(verdict_sentence(outcome), "before all-reduce reached 95 %"));
  EXPECT_TRUE(contains_words(next_sentence(outcome), "Next: --")) << "more training, not seeds";
  EXPECT_FALSE(contains_words(next_sentence(outcome), "--seeds"));
}

TEST(Outcome, OfAnUnreachedTargetHasNoAnswerYet) {
  const Outcome outcome = of({reaching(all_reduce(1.0), 0), reaching(async(1.0), 0)});
  EXPECT_EQ(verdict_sentence(outcome), "No answer yet: no strategy reached 95 % with all seeds.");
}

TEST(Outcome, OfABusyMachineHasNoAnswer) {
  Comparison comparison = made_up_comparison({all_reduce(2.0), async(1.0)});
  for (ComparedRun& run : comparison.variants[1].runs) run.result->others_cpu_share = 0.29;
  const Outcome outcome = outcome_of("", std::move(comparison));
  EXPECT_EQ(verdict_sentence(outcome), "No answer: other programs used up to 29 % of the CPUs.");
  EXPECT_EQ(outcome.cells[1].state, RowState::kBusy);
  EXPECT_TRUE(contains(time_figure(outcome, FigureForm::kWide).file(), "<circle"));
  EXPECT_TRUE(contains(accuracy_figure(outcome, FigureForm::kWide).file(), "<circle"));
}

TEST(Outcome, SaysWhichVariantsEndedLessAccurate) {
  const Outcome outcome =
      of({all_reduce(1.0),
          asynchronous(made_up_variant("parameter-server:async", 8, runs_of(1.0), kPoor))});
  EXPECT_EQ(accuracy_sentence(accuracy_losses(outcome), outcome.rows),
            "Accuracy: async ended 1.4 points below all-reduce.");
}

// Such a run has no time, so it takes no part in figures on a logarithmic axis.
TEST(Outcome, OfATargetReachedAtTheStartHasNoTime) {
  Comparison comparison = scaled({all_reduce(2.0), async(1.0)});
  for (ComparedRun& run : comparison.variants[1].runs) {
    for (CurvePoint& point : run.result->curve) point.seconds = 0.0;
  }
  const Outcome outcome = outcome_of("", std::move(comparison));
  EXPECT_EQ(outcome.cells[1].ratio, 0.0);
  EXPECT_TRUE(contains(time_figure(outcome, FigureForm::kWide).file(), "<circle"));
  EXPECT_TRUE(contains(accuracy_figure(outcome, FigureForm::kWide).file(), "<circle"));
}

TEST(Outcome, SaysThatRatesAreTuned) {
  Comparison comparison = scaled({all_reduce(3.0), async(1.0)});
  comparison.learning_rate_rule = "tuned";
  comparison.tuning.emplace_back();
  comparison.variants[0].learning_rate = 0.1;
  comparison.variants[1].learning_rate = 0.02;
  const Outcome outcome = outcome_of("", std::move(comparison));
  EXPECT_TRUE(contains_words(verdict_sentence(outcome), "At tuned rates, use async: it is"));
  EXPECT_TRUE(
      contains_words(setting_sentence(outcome), "tuned: rates 0.02 (async) and 0.1 (all-reduce)"));
}

TEST(Outcome, SaysThatRatesAreUntunedIfItMakesAClaim) {
  const auto verdict = [](const char* rule, double seconds, std::size_t seeds) {
    std::vector<ComparedVariant> variants = {all_reduce(3.0), async(seconds)};
    for (ComparedVariant& variant : variants) variant.runs.resize(seeds);
    Comparison comparison = scaled(std::move(variants));
    comparison.learning_rate_rule = rule;
    return verdict_sentence(outcome_of("", std::move(comparison)));
  };
  for (const char* rule : {"linear", "sqrt", "none", "inverse-workers", "mixed"}) {
    EXPECT_TRUE(verdict(rule, 1.0, 5).starts_with("At untuned rates, use async: it is ")) << rule;
    EXPECT_TRUE(verdict(rule, 3.0, 5).starts_with("At untuned rates, ")) << rule;
    EXPECT_TRUE(verdict(rule, 1.0, 3).starts_with("Not decided: ")) << rule;
  }
  for (const char* rule : {"", "given", "tuned", "preset"}) {
    EXPECT_TRUE(verdict(rule, 1.0, 5).starts_with("Use async: ")) << rule;
  }
}

// Returns the variant with a rate of 0.01 at a momentum of 0.9, and a mean staleness of 7 in all
// runs. One worker without momentum stands `stable_rate`.
ComparedVariant stale(ComparedVariant variant, double stable_rate) {
  variant.learning_rate = 0.01;
  variant.momentum = 0.9;
  variant.stable_rate = stable_rate;
  for (ComparedRun& run : variant.runs) {
    run.result->summary.staleness = {
        {.worker = 0, .histogram = ps::StalenessHistogram::of({0}, 0.0, 0)}};
    run.result->summary.staleness_mean = 7.0;
  }
  return variant;
}

// 0.01 * (1 + 7) / (1 - 0.9) = 0.8.
TEST(Outcome, MakesNoClaimAboutAVariantWithATooLargeRate) {
  ComparedVariant poor =
      asynchronous(made_up_variant("parameter-server:async", 8, runs_of(1.0), kPoor));
  const Outcome outcome = of({all_reduce(3.0), backup(2.0), stale(poor, 0.2)});
  EXPECT_TRUE(contains_words(verdict_sentence(outcome), "use 1 backup worker: it is 1.5 times"));
  EXPECT_EQ(accuracy_sentence(accuracy_losses(outcome), outcome.rows),
            "Accuracy: no difference found (97.2 %).");
  EXPECT_EQ(outcome.cells[2].state, RowState::kLeftOut);
  for (const PairDifference& pair : outcome.claims.all()) EXPECT_NE(pair.b, 2U);
  std::ostringstream out;
  print_outcome(out, outcome);
  EXPECT_TRUE(contains(out.str(), "async: 0.01 is too large for stale gradients; try 0.0025",
                       "left out: its learning rate is too large for stale gradients; try 0.0025",
                       "Next: learning-rate=0.0025 in the braces of parameter-server:async, or"));
  EXPECT_LE(count_words(out.str()), 180U) << out.str();
}

TEST(Outcome, OfOneVariantAndATooLargeRateNamesTheRate) {
  const Outcome outcome = of({all_reduce(1.0), stale(async(0.5), 0.2)});
  EXPECT_EQ(verdict_sentence(outcome),
            "Not decided: the rate of async is too large for stale gradients.");
  EXPECT_EQ(accuracy_sentence(accuracy_losses(outcome), outcome.rows), "");
  EXPECT_EQ(verdict_sentence(of({stale(async(0.5), 0.2), stale(ssp(0.5), 0.2)})),
            "Not decided: the rates of async and ssp:3 are too large for stale gradients.");
}

// The rate is compared at the measured staleness, with a tolerance for the search in factors of 2.
TEST(Outcome, KeepsAVariantWithARateThatOneWorkerStands) {
  EXPECT_EQ(of({all_reduce(3.0), stale(async(1.0), 0.8)}).answer.form, AnswerForm::kWinner);
  EXPECT_EQ(of({all_reduce(3.0), stale(async(1.0), 0.6)}).answer.form, AnswerForm::kWinner);
  EXPECT_EQ(of({all_reduce(3.0), stale(async(1.0), 0.5)}).answer.form, AnswerForm::kNotDecided);
  ComparedVariant fresher = stale(async(1.0), 0.2);
  for (ComparedRun& run : fresher.runs) run.result->summary.staleness_mean = 1.0;
  EXPECT_EQ(of({all_reduce(3.0), fresher}).answer.form, AnswerForm::kWinner);
}

// A run that diverged has no staleness, so that of equal workers counts.
TEST(Outcome, NamesATooLargeRateWithWhichAllRunsFailed) {
  ComparedVariant failed = stale(async(1.0), 0.2);
  failed.runs = {failed_run(1, "the loss is not finite")};
  EXPECT_EQ(of({all_reduce(3.0), failed}).rows[1].better_rate.value_or(0.0), 0.2 / 8.0 * (1 - 0.9));
}

// The answer is understood at a glance: 180 words in all for four rows, the verdict in 30.
TEST(Outcome, KeepsToItsBudgetsOfWords) {
  for (const Outcome& outcome :
       {of({all_reduce(3.0), backup(2.0), async(1.0), ssp(1.5)}),
        of({all_reduce(3.0), backup(2.0), async(1.0), ssp(1.001)}),
        of({all_reduce(1.0), backup(1.001), async(1.002), ssp(1.003)}),
        of({one_device(4.0), backup(1.001), async(1.002), ssp(1.003)}),
        of({all_reduce(3.0), backup(1.0), async(1.001), reaching(ssp(1.0), 3)})}) {
    std::ostringstream out;
    print_outcome(out, outcome);
    EXPECT_LE(count_words(out.str()), 180U) << out.str();
    EXPECT_LE(count_words(verdict_sentence(outcome)), kMostVerdictWords)
        << verdict_sentence(outcome);
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

}  // namespace
}  // namespace syncopate::bench
