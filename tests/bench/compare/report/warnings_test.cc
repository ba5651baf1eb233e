// The warnings of a comparison.
#include <gtest/gtest.h>

#include "bench/compare/report/verdict.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

std::string warned(const Comparison& comparison) {
  std::string text;
  for (const Warning& warning : warnings(comparison, summarise(comparison))) {
    text += warning.subject + ": " + warning.text + "\n";
  }
  return text;
}

TEST(Warnings, NameTheSeedWithWhichTheSpeedDeviatedMost) {
  const auto at_speeds = [](ComparedVariant variant, const std::vector<double>& speeds) {
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      variant.runs[i].result->summary.samples_per_second = speeds[i];
    }
    return variant;
  };
  const auto text = [&](double of_a, double of_b) {
    return warned(
        scaled({at_speeds(made_up_variant("a", 8, kFast, kGood), {100, of_a, 101, 99, 100}),
                at_speeds(made_up_variant("b", 8, kSlow, kGood), {50, of_b, 50.5, 49.5, 50})}));
  };
  EXPECT_TRUE(contains_words(text(70, 35),
                             "uneven machine: with seed 2, the largest deviation, the rows "
                             "trained 30 % fewer samples/s"));
  // The square root of 0.98 * 0.6 is 0.767.
  EXPECT_TRUE(
      contains_words(text(98, 30),
                     "23 % fewer samples/s (geometric mean) than with the others, from 2 % fewer "
                     "(a) to 40 % fewer (b): a repetition may order the rows differently; "));
  EXPECT_TRUE(contains_words(text(103, 30), "from 3 % more (a) to 40 % fewer (b)"));
  EXPECT_FALSE(contains_words(text(95, 47.5), "uneven machine"));
  // A machine that was faster for a while orders the rows by chance as well.
  EXPECT_TRUE(contains_words(text(98, 80), "trained 25 % more samples/s (geometric mean) than"));
  EXPECT_TRUE(contains_words(text(98, 80), "from 2 % fewer (a) to 60 % more (b): "));
}

TEST(Warnings, NameTheRowWhoseTimeTheSpeedOfTheMachineChangedMost) {
  const auto with_seed_2_at = [](double seconds, double speed = 0.5) {
    ComparedVariant late = made_up_variant("a", 8, {100, seconds, 101, 99, 100}, kGood);
    late.runs[1].result->summary.samples_per_second *= speed;
    return warned(scaled({late, made_up_variant("b", 8, kSlow, kGood)}));
  };
  EXPECT_TRUE(contains_words(with_seed_2_at(200), "and a reached 95 % in 200 s, 2.0x as long: "))
      << with_seed_2_at(200);
  EXPECT_FALSE(contains_words(with_seed_2_at(120), "as long: "));
  EXPECT_TRUE(
      contains_words(with_seed_2_at(50, 2.0), "and a reached 95 % in 50.0 s, 0.50x as long"));
  // A run that needed more samples says nothing about the machine.
  ComparedVariant slow = made_up_variant("a", 8, kFast, kGood);
  slow.runs[1].result->summary.samples_per_second *= 0.5;
  ComparedVariant late = made_up_variant("b", 8, {100, 200, 101, 99, 100}, kGood);
  late.runs[1].result->summary.samples_per_second *= 2.0;
  const std::string text = warned(scaled({slow, late}));
  EXPECT_TRUE(contains_words(text, "uneven machine: with seed 2"));
  EXPECT_FALSE(contains_words(text, "as long: "));
}

// Which gradients make up an update depends on timing with backup workers too.
TEST(Warnings, NameTheAccuraciesThatDependOnTiming) {
  const auto text = warned(scaled({made_up_variant("ring", 4, kFast, kGood),
                                   asynchronous(made_up_variant("server:async", 4, kSlow, kGood)),
                                   made_up_variant("server:sync+backup:1", 4, kSlow, kGood)}));
  EXPECT_TRUE(
      contains_words(text, "and so are the accuracies of server:async and server:sync+backup:1:"));
}

TEST(Warnings, CountRunsThatFellBelowTheTargetAgain) {
  ComparedVariant variant = made_up_variant("a", 8, kFast, kGood);
  const Comparison steady = scaled({variant, made_up_variant("b", 8, kSlow, kGood)});
  EXPECT_FALSE(contains_words(warned(steady), "again later"));
  variant.runs[3] = made_up_run(4, {0.5, 0.96, 0.94, 0.972}, 0.865);
  const Comparison falling = scaled({variant, made_up_variant("b", 8, kSlow, kGood)});
  EXPECT_TRUE(contains_words(warned(falling), "1 run fell below 95 % again later (1 of a)."));
  ComparedVariant other = made_up_variant("b", 8, kSlow, kGood);
  other.runs[0] = other.runs[1] = variant.runs[3];
  EXPECT_TRUE(contains_words(warned(scaled({variant, other})),
                             "3 runs fell below 95 % again later (1 of a and 2 of b)."));
}

TEST(Warnings, SayHowLateATimeToTheTargetMayBe) {
  // Runs of `a` reach the target 100 samples of 0.5 s after the evaluation before.
  ComparedVariant a = made_up_variant("a", 8, {100, 100, 100}, {0.97, 0.97, 0.97});
  const Comparison even = made_up_comparison({a, made_up_variant("b", 8, {100}, {0.97})});
  EXPECT_TRUE(contains_words(
      warned(even), "that reached it; the previous one was 50.0 s (100 samples) earlier, "));
  for (CurvePoint& point : a.runs[0].result->curve) point.samples *= 2;
  const Comparison uneven = made_up_comparison({a, made_up_variant("b", 8, {40}, {0.97})});
  EXPECT_TRUE(contains_words(warned(uneven),
                             "was 20.0 s to 50.0 s (100 to 200 samples) earlier, depending on "
                             "the run"));
}

TEST(Warnings, NameTheRowsWhoseSpeedIsUnsteady) {
  ComparedVariant unsteady = made_up_variant("one-device", 1, {100, 100, 240}, kGood);
  const ComparedVariant steady = made_up_variant("ring", 4, {100, 110, 105}, kGood);
  EXPECT_TRUE(contains_words(warned(scaled({unsteady, steady})),
                             "unsteady speed: the samples/s of runs of one row differ: one-device "
                             "from "));
  EXPECT_FALSE(contains_words(warned(scaled({steady, steady})), "unsteady"));
}

TEST(Warnings, StateThatWorkersSharedCpus) {
  Comparison comparison = scaled(
      {made_up_variant("one-device", 1, kSlow, kGood), made_up_variant("ring", 4, kFast, kGood)});
  comparison.machines = {{.host = "node7", .cpus = 2}};
  comparison.threads_per_worker = 1;
  EXPECT_TRUE(
      contains_words(warned(comparison), "shared CPUs: 4 workers of 1 thread shared 2 CPUs"));
  comparison.machines.front().cpus = 4;
  EXPECT_FALSE(contains_words(warned(comparison), "shared CPUs"));
  comparison.machines.front().cpus = 2;
  comparison.has_virtual_clock = true;
  EXPECT_FALSE(contains_words(warned(comparison), "shared CPUs"));
}

TEST(Warnings, NameFailedAndMissingRuns) {
  ComparedVariant failing = made_up_variant("failing", 8, {1, 1}, {0.97, 0.97});
  failing.runs.push_back(failed_run(3, "worker 3 fell silent"));
  const std::string text =
      warned(scaled({made_up_variant("mirrored", 8, kSlow, kGood), failing,
                     ComparedVariant{"later", 8, {pending_run(), pending_run()}}}));
  EXPECT_TRUE(
      contains_words(text, "failed runs: failing: 1 of 3 runs (seed 3: worker 3 fell silent)"));
  EXPECT_TRUE(contains_words(text, "missing runs: not yet trained: later (2 runs)"));
}

TEST(Warnings, NameTheRowsWithFewSeeds) {
  const auto few = made_up_variant("few", 8, {1, 1, 1, 1}, {0.97, 0.97, 0.97, 0.97});
  EXPECT_TRUE(
      contains_words(warned(scaled({made_up_variant("a", 8, kSlow, kGood), few})),
                     "few seeds: few (4 seeds): claims need at least 3 for accuracy and 5"));
  EXPECT_TRUE(contains_words(warned(scaled({few, few})), "few seeds: 4 seeds: claims need"));
}

TEST(Warnings, CountRunsThatMissedTheTargetAndRunsThatFailed) {
  ComparedVariant failing = made_up_variant("failing", 8, {1, 1}, {0.97, 0.97});
  failing.runs.push_back(failed_run(3, "worker 3 fell silent"));
  EXPECT_TRUE(contains_words(warned(scaled({made_up_variant("a", 8, kSlow, kGood), failing})),
                             "95 % was reached by failing with 2 of 3 seeds (1 failed); nothing"));
  const ComparedVariant never{"never", 8, {made_up_run(1, {0.5}, 1.0)}};
  EXPECT_TRUE(contains_words(warned(scaled({never, never})),
                             "target missed: 95 % was reached by no run\n"));
}

TEST(Warnings, CountTheOccasionsOfTheRuns) {
  Comparison comparison =
      scaled({made_up_variant("a", 8, kSlow, kGood), made_up_variant("b", 8, kFast, kGood)});
  const auto at_every = [&](double hours) {
    for (ComparedVariant& variant : comparison.variants) {
      for (std::size_t i = 0; i < variant.runs.size(); ++i) {
        variant.runs[i].result->began_at = 3600.0 * hours * static_cast<double>(i);
      }
    }
    return warned(comparison);
  };
  EXPECT_TRUE(contains_words(at_every(1), "one occasion: all times are of one machine, without"));
  EXPECT_TRUE(contains_words(at_every(24), "no network: all times are of one machine, without"));
  EXPECT_TRUE(contains_words(at_every(24), ", on 5 occasions: between rows"));
  comparison.machines = {{.host = "node7", .cpus = 64}, {.host = "node8", .cpus = 64}};
  const std::string of_two = at_every(1);
  EXPECT_TRUE(contains_words(of_two, "no network: all times are without a network"));
  EXPECT_FALSE(contains_words(of_two, "one machine"));
  EXPECT_FALSE(contains_words(of_two, "occasion"));
}

TEST(Warnings, SayWhichTimesABusyMachineFavours) {
  Comparison comparison =
      scaled({made_up_variant("a", 8, kSlow, kGood), made_up_variant("b", 8, kFast, kGood)});
  for (ComparedVariant& variant : comparison.variants) {
    variant.runs[0].result->others_cpu_share = 0.41;
  }
  EXPECT_TRUE(contains_words(warned(comparison),
                             "busy machine: other programs took up to 41 % of the CPUs during runs "
                             "of all rows; "));
  EXPECT_TRUE(contains_words(warned(comparison),
                             "variants with more processes get more of a busy machine, so times "
                             "favour them. Repeat the command"));
}

}  // namespace
}  // namespace syncopate::bench
