// Draws comparisons of variants that are identical in truth, and of variants that are not, and
// counts what their reports claim.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include "bench/compare/report/outcome.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

// Where the target lies: all runs reach it, 7 of 10 do, or none. With kCollapse 3 of 10 runs end at
// the accuracy of guessing and the others reach it.
enum class Target : std::uint8_t { kEasy, kNear, kOutOfReach, kCollapse };

// Draws runs with 20 evaluations. Speed varies by 10 % or as given, final accuracy by 0.2 points.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  ComparedRun run(std::uint64_t seed, Target target, double slowness, double noise) {
    std::normal_distribution<double> normal;
    constexpr int kEvaluations = 20;
    const bool is_lucky = std::bernoulli_distribution(0.7)(random_);
    const bool is_collapsed = target == Target::kCollapse && !is_lucky;
    int reaches = kEvaluations + 1;
    if (target == Target::kEasy || (target == Target::kCollapse && is_lucky)) reaches = 10;
    if (target == Target::kNear && is_lucky) reaches = 18;
    std::vector<double> accuracies;
    for (int i = 1; i <= kEvaluations; ++i) accuracies.push_back(i < reaches ? 0.90 : 0.951);
    // The final accuracy, the mean of the last two, must not depend on whether the target was
    // reached.
    const double last = is_collapsed ? 0.1 : 0.95 + 0.002 * normal(random_);
    if (reaches > kEvaluations) accuracies[kEvaluations - 2] = accuracies.back() = 0.9;
    ComparedRun run =
        made_up_run(seed, accuracies, 0.001 * slowness * std::exp(noise * normal(random_)));
    // A validation split decides when the target was reached, so the test accuracy is drawn alone.
    run.result->summary.test.metric.value = last;
    return run;
  }

  // Returns a comparison. Its first variant is `factor` times slower than the others.
  Comparison comparison(int variants, int seeds, Target target, double factor = 1.0,
                        double noise = 0.1) {
    std::vector<ComparedVariant> all;
    for (int v = 0; v < variants; ++v) {
      ComparedVariant variant{.label = "variant " + std::to_string(v), .workers = 4, .runs = {}};
      variant.is_synchronous = v % 2 == 0;
      variant.is_distributed = v % 3 != 0;
      for (int seed = 1; seed <= seeds; ++seed) {
        variant.runs.push_back(
            run(static_cast<std::uint64_t>(seed), target, v == 0 ? factor : 1.0, noise));
      }
      all.push_back(std::move(variant));
    }
    Comparison comparison = made_up_comparison(std::move(all));
    comparison.learning_rate_rule = "linear";
    comparison.chance = {
        .share = 0.1, .classes = 10, .test_samples = 10'000, .validation_samples = 1'000};
    return comparison;
  }

 private:
  std::mt19937_64 random_;
};

// Whether a report says that identical variants differ: by its answer, by a claim, or by an
// interval that excludes equality. Intervals agree with claims; they are slow to compute.
bool claims_something(const Comparison& comparison, bool looks_at_intervals) {
  const Outcome outcome = outcome_of("", comparison);
  if (outcome.answer.has_winners()) return true;
  const auto is_claimed = [](const auto& pair) { return pair.is_claimed(); };
  return std::ranges::any_of(outcome.claims.all_censored(), is_claimed) ||
         std::ranges::any_of(outcome.claims.all(), [&](const PairDifference& pair) {
           return is_claimed(pair) || (looks_at_intervals && !pair.interval().contains(0.0));
         });
}

struct Cell {
  int variants;
  int seeds;
};

class ReportsOfIdenticalVariants : public testing::TestWithParam<Cell> {};

// 5 % of the reports may claim something. The limits are what at most one in a thousand correct
// programs exceeds: 5 % plus 3.1 standard errors.
TEST_P(ReportsOfIdenticalVariants, ClaimSomethingInAtMostOneOfTwenty) {
  constexpr int kReports = 200;
  int all_wrong = 0;
  for (const Target target :
       {Target::kEasy, Target::kNear, Target::kOutOfReach, Target::kCollapse}) {
    Draw draw(17);
    int wrong = 0;
    for (int i = 0; i < kReports; ++i) {
      const Comparison comparison = draw.comparison(GetParam().variants, GetParam().seeds, target);
      wrong += claims_something(comparison, i % 10 == 0) ? 1 : 0;
    }
    std::cout << "target " << static_cast<int>(target) << ": " << wrong << " of " << kReports
              << "\n";
    EXPECT_LE(wrong, 19);
    all_wrong += wrong;
  }
  EXPECT_LE(all_wrong, 59);
}

INSTANTIATE_TEST_SUITE_P(Of, ReportsOfIdenticalVariants,
                         testing::Values(Cell{2, 3}, Cell{2, 5}, Cell{2, 10}, Cell{7, 3},
                                         Cell{7, 5}, Cell{7, 10}));

// Between rows with equal weights the distance of evaluations is no source of error.
TEST(ReportsOfEqualWeights, ClaimSomethingInAtMostOneOfTwenty) {
  constexpr int kReports = 500;
  Draw draw(19);
  int wrong = 0;
  for (int i = 0; i < kReports; ++i) {
    Comparison comparison = draw.comparison(3, 5, Target::kEasy);
    for (ComparedVariant& variant : comparison.variants) {
      for (ComparedRun& run : variant.runs) {
        run.result->summary.weights_hash = std::to_string(run.result->seed);
        run.result->summary.test.metric.value = 0.95;
      }
    }
    wrong += claims_something(comparison, true) ? 1 : 0;
  }
  EXPECT_LE(wrong, 40);  // 5 % plus 3.1 standard errors
}

// The share of reports that find a factor of 1.5 in time, by the noise of the times.
TEST(ReportsOfDifferentVariants, FindAFactorOfOneAndAHalfWithFiveSeeds) {
  constexpr int kReports = 200;
  for (const int variants : {2, 7}) {
    for (const double noise : {0.1, 0.2, 0.3}) {
      Draw draw(18);
      int found = 0;
      for (int i = 0; i < kReports; ++i) {
        const Comparison comparison = draw.comparison(variants, 5, Target::kEasy, 1.5, noise);
        found += Claims(summarise(comparison)).is_sooner(1, 0) ? 1 : 0;
      }
      std::cout << variants << " variants, noise " << noise << ": found in " << found << " of "
                << kReports << " reports\n";
      if (noise > 0.1) continue;
      EXPECT_GE(found, 160);  // 80 %
    }
  }
}

// Five seeds that all missed the target show that a variant misses it, whatever the others do.
TEST(ReportsOfDifferentVariants, ShowThatAVariantMissesTheTarget) {
  Draw draw(20);
  Comparison comparison = draw.comparison(3, 5, Target::kEasy);
  for (ComparedRun& run : comparison.variants[2].runs) {
    run = draw.run(run.result->seed, Target::kOutOfReach, 1.0, 0.1);
  }
  const Claims claims(summarise(comparison));
  EXPECT_TRUE(claims.is_sooner(0, 2));
  EXPECT_FALSE(claims.is_sooner(0, 1));
  EXPECT_FALSE(claims.is_sooner(2, 0));
}

}  // namespace
}  // namespace syncopate::bench
