#include "bench/compare/report/comparison_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "bench/compare/report/comparison_report.h"
#include "bench/plots/text.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

std::vector<std::string> printed(const Comparison& comparison) {
  std::stringstream text;
  print_table(text, comparison);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(ComparisonTable, AlignsItsColumns) {
  const auto lines =
      printed(made_up_comparison({made_up_variant("mirrored", 4, {40, 42, 44}, {0.97, 0.97, 0.97}),
                                  made_up_variant("async", 16, {10, 11, 12}, {0.96, 0.97, 0.98})}));
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[0],
            "strategy  workers  updates  accuracy  to 95 %  samples/s   speed-up  staleness");
  EXPECT_EQ(lines[1],
            "                   x batch  final, %        s       mean  to target       mean");
  EXPECT_EQ(lines[2],
            "mirrored        4  3 x 100     97.00     42.0       4.77      1.00x          -");
  EXPECT_EQ(lines[3], "                             +- 0.00  +- 2.00   +- 0.227");
}

TEST(ComparisonTable, NamesVariantsThatReachedTheTargetNeverOrSometimes) {
  ComparedVariant sometimes = made_up_variant("sometimes", 2, {10, 12}, {0.97, 0.97});
  sometimes.runs.push_back(made_up_run(3, {0.5}, 0.1));
  const auto lines = printed(
      made_up_comparison({sometimes, ComparedVariant{"never", 2, {made_up_run(1, {0.5}, 0.1)}}}));
  EXPECT_NE(lines[2].find(" 2 of 3 "), std::string::npos);
  EXPECT_NE(lines[4].find(" not reached "), std::string::npos);
}

TEST(ComparisonTable, HasALineForFailuresAndForPendingRuns) {
  const auto lines = printed(made_up_comparison(
      {ComparedVariant{"async", 2, {failed_run(2, "it\nbroke\x1b[2J"), pending_run()}}}));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[3], "  failed, seed 2: it broke?[2J");
  EXPECT_EQ(lines[4], "  pending: 1 run");
}

TEST(ComparisonTable, FitsIntoAHundredColumnsWithLongLabels) {
  const std::string words =
      "parameter-server:ssp:2+inverse, momentum 0.9, learning rate / workers, ";
  const auto lines = printed(made_up_comparison(
      {made_up_variant(words + words + std::string(150, 'x'), 128, {123456, 234567}, {0.97, 0.96}),
       ComparedVariant{"b", 2, {failed_run(1, std::string(250, 'y') + words)}}}));
  for (const std::string& line : lines) EXPECT_LE(width_of(line), 100U) << line;
}

TEST(ComparisonTable, HasNoTimeColumnWithoutATarget) {
  Comparison comparison = made_up_comparison({made_up_variant("mirrored", 4, {40}, {0.97})});
  comparison.target_accuracy.reset();
  EXPECT_EQ(results_table(comparison, TableWidth::kTerminal).heads.size(), 7U);
  EXPECT_EQ(results_table(comparison, TableWidth::kTerminal).rows[0].cells.size(), 6U);
}

TEST(ComparisonTable, DistinguishesProcessesFromReplicasAndNamesTheMachine) {
  ComparedVariant mirrored = made_up_variant("mirrored", 4, {40}, {0.97});
  mirrored.is_distributed = false;
  ComparedVariant async = made_up_variant("async", 4, {40}, {0.97});
  async.is_distributed = true;
  Comparison comparison = made_up_comparison({mirrored, async});
  comparison.machines = {{.host = "node7",
                          .processor = "Xeon",
                          .cpus = 2,
                          .cores = 1,
                          .gpus = {"H200", "H200"},
                          .version = "0.1.0",
                          .date = "2026-11-23 14:05"}};
  comparison.threads_per_worker = 2;
  const auto lines = printed(comparison);
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_NE(lines[1].find("x replicas"), std::string::npos);
  EXPECT_NE(lines[2].find(" 1 x 4 "), std::string::npos);
  EXPECT_NE(lines[3].find(" shared CPUs"), std::string::npos);
  EXPECT_NE(lines[4].find(" 4 x 1 "), std::string::npos);
  EXPECT_EQ(lines[6],
            "node7: 2 CPUs on 1 core (Xeon), 2 GPUs (H200); syncopate 0.1.0, 2026-11-23 14:05");
  EXPECT_EQ(lines[7], "4 workers or replicas of 2 threads shared 2 CPUs");
}

}  // namespace
}  // namespace syncopate::bench
