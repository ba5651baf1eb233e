// Draws comparisons of variants that are identical in truth, and of variants that are not, and
// counts what their reports claim.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include "bench/compare/report/claims.h"
#include "bench/compare/report/outcome.h"
#include "bench/compare/report/verdict.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

enum class Target : std::uint8_t { kEasy, kNear, kOutOfReach };

// Draws runs with 20 evaluations. Their speed varies by 10 %, their final accuracy by 0.2 points
// and the evaluation that reaches the target by one.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  ComparedRun run(std::uint64_t seed, Target target, double slowness) {
    std::normal_distribution<double> normal;
    constexpr int kEvaluations = 20;
    const double share_near = 0.7;  // of the runs that reach a target near the final accuracy
    int reaches = kEvaluations + 1;
    if (target == Target::kEasy) reaches = 10;
    if (target == Target::kNear && std::bernoulli_distribution(share_near)(random_)) reaches = 19;
    std::vector<double> accuracies;
    for (int i = 1; i <= kEvaluations; ++i) accuracies.push_back(i < reaches ? 0.90 : 0.951);
    accuracies.back() = (reaches > kEvaluations ? 0.945 : 0.955) + 0.0005 * normal(random_);
    ComparedRun run =
        made_up_run(seed, accuracies, 0.001 * slowness * std::exp(0.1 * normal(random_)));
    // The final accuracy must not depend on whether the target was reached.
    run.result->summary.test_metric.value = 0.95 + 0.002 * normal(random_);
    return run;
  }

  // Returns a comparison of variants of which the first is `factor` times slower than the others.
  Comparison comparison(int variants, int seeds, Target target, double factor = 1.0) {
    std::vector<ComparedVariant> all;
    for (int v = 0; v < variants; ++v) {
      ComparedVariant variant{.label = "variant " + std::to_string(v), .workers = 4, .runs = {}};
      variant.is_synchronous = v % 2 == 0;
      variant.is_distributed = v % 3 != 0;
      for (int seed = 1; seed <= seeds; ++seed) {
        variant.runs.push_back(
            run(static_cast<std::uint64_t>(seed), target, v == 0 ? factor : 1.0));
      }
      all.push_back(std::move(variant));
    }
    Comparison comparison = made_up_comparison(std::move(all));
    comparison.learning_rate_rule = "linear";
    return comparison;
  }

 private:
  std::mt19937_64 random_;
};

// Whether a report says that identical variants differ: by its answer, by a claim, by leaving a
// variant out of its recommendation, or by an interval in the table that excludes equality.
bool claims_something(const Comparison& comparison) {
  const Verdict found = verdict(comparison);
  for (const std::string& sentence : found.sentences) {
    if (sentence.find("beats") != std::string::npos || sentence.starts_with("Use ")) return true;
  }
  const AnswerForm form = outcome_of("", comparison).answer.form;
  if (form == AnswerForm::kWinner || form == AnswerForm::kTie || form == AnswerForm::kMissed) {
    return true;
  }
  const Claims claims(summarise(comparison));
  for (const PairDifference& pair : claims.all()) {
    if (pair.is_claimed() || !pair.interval.contains(0.0)) return true;
  }
  return !found.recommended.empty();
}

struct Case {
  int variants;
  int seeds;
  Target target;
};

class ReportOfIdenticalVariants : public testing::TestWithParam<Case> {};

// 5 % of the reports may claim something. The limit of 7.2 % is what at most one in a thousand
// correct programs exceeds with 1,000 reports: 5 % plus 3.1 standard errors.
TEST_P(ReportOfIdenticalVariants, ClaimsSomethingInAtMostOneOfTwenty) {
  constexpr int kReports = 1000;
  const Case& one = GetParam();
  Draw draw(17);
  int wrong = 0;
  for (int i = 0; i < kReports; ++i) {
    wrong += claims_something(draw.comparison(one.variants, one.seeds, one.target)) ? 1 : 0;
  }
  RecordProperty("false_reports_of_1000", wrong);
  std::cout << one.variants << " variants, " << one.seeds << " seeds, target "
            << static_cast<int>(one.target) << ": " << wrong << " of " << kReports << "\n";
  EXPECT_LE(wrong, 72);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int variants : {2, 7}) {
    for (const int seeds : {3, 5, 10}) {
      for (const Target target : {Target::kEasy, Target::kNear, Target::kOutOfReach}) {
        all.push_back({variants, seeds, target});
      }
    }
  }
  return all;
}

// Between rows with equal weights the distance of evaluations is no source of error.
TEST(ReportOfEqualWeights, ClaimsSomethingInAtMostOneOfTwenty) {
  constexpr int kReports = 1000;
  Draw draw(19);
  int wrong = 0;
  for (int i = 0; i < kReports; ++i) {
    Comparison comparison = draw.comparison(3, 5, Target::kEasy);
    for (ComparedVariant& variant : comparison.variants) {
      for (ComparedRun& run : variant.runs) {
        run.result->summary.weights_hash = std::to_string(run.result->seed);
        run.result->summary.test_metric.value = 0.95;
      }
    }
    wrong += claims_something(comparison) ? 1 : 0;
  }
  EXPECT_LE(wrong, 72);
}

INSTANTIATE_TEST_SUITE_P(Of, ReportOfIdenticalVariants, testing::ValuesIn(cases()));

// The share of reports that find a factor of 1.5 in time, with two and with seven variants.
TEST(ReportOfDifferentVariants, FindsAFactorOfOneAndAHalfWithFiveSeeds) {
  for (const int variants : {2, 7}) {
    constexpr int kReports = 300;
    Draw draw(18);
    int found = 0;
    for (int i = 0; i < kReports; ++i) {
      const Comparison comparison = draw.comparison(variants, 5, Target::kEasy, 1.5);
      found += Claims(summarise(comparison)).is_sooner(1, 0) ? 1 : 0;
    }
    std::cout << variants << " variants: found in " << found << " of " << kReports << " reports\n";
    EXPECT_GE(found, 240);  // 80 %
  }
}

}  // namespace
}  // namespace syncopate::bench
