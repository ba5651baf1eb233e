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
            "strategy  workers  updates  accuracy  to 95 %  samples/s  speed-up  staleness");
  EXPECT_EQ(lines[1],
            "                   x batch  final, %        s       mean      time       mean");
  EXPECT_EQ(lines[2],
            "mirrored        4  3 x 100     97.00     42.0       4.77     1.00x          -");
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

// Returns the cells of the column with this head, "NAME UNIT"; none if there is no such column.
std::vector<std::string> column(const Comparison& comparison, const std::string& head,
                                TableWidth width = TableWidth::kPage) {
  const Table table = results_table(comparison, width);
  std::vector<std::string> cells;
  for (std::size_t i = 1; i < table.heads.size(); ++i) {
    if (table.heads[i].name + " " + table.heads[i].unit != head) continue;
    for (const TableRow& row : table.rows) cells.push_back(row.cells[i - 1]);
  }
  return cells;
}

TEST(ComparisonTable, HasTheSamplesToTheTargetOnThePageAlone) {
  ComparedVariant sometimes = made_up_variant("sometimes", 2, {10, 12}, {0.97, 0.97});
  sometimes.runs.push_back(made_up_run(3, {0.5}, 0.1));
  const Comparison comparison =
      made_up_comparison({made_up_variant("a", 1, {40, 42, 44}, {0.97, 0.97, 0.97}), sometimes});
  EXPECT_EQ(column(comparison, "samples to 95 %"), (std::vector<std::string>{"200\nn = 3", "-"}));
  EXPECT_TRUE(column(comparison, "samples to 95 %", TableWidth::kTerminal).empty());
}

TEST(ComparisonTable, HasTheSpeedUpOverAFasterRowWithOneWorker) {
  const auto one = [](const std::string& label, double seconds) {
    return made_up_variant(label, 1, {seconds}, {0.97});
  };
  const ComparedVariant ring = made_up_variant("ring", 4, {10}, {0.97});
  EXPECT_EQ(column(made_up_comparison({one("a", 40), one("b", 20), ring}), "speed-up over b"),
            (std::vector<std::string>{"0.50x", "1.00x", "2.0x"}));
  EXPECT_TRUE(
      column(made_up_comparison({one("a", 20), one("b", 40), ring}), "speed-up over a").empty())
      << "the first row is the fastest";
}

// Holm's procedure tests the claim at half of 5 %, and the accuracies, which are equal, at 5 %.
TEST(ComparisonTable, HasTheLevelOfItsIntervalsInTheHead) {
  Comparison comparison =
      scaled({made_up_variant("a", 1, kSlow, kGood), made_up_variant("b", 8, kFast, kGood)});
  EXPECT_EQ(column(comparison, "speed-up time, >= 97.5 %").size(), 2U);
  comparison.target_accuracy.reset();
  EXPECT_EQ(column(comparison, "speed-up samples/s, 95 %").size(), 2U);
}

TEST(ComparisonTable, SaysHowManyGradientsWereDropped) {
  ComparedVariant backup = made_up_variant("server:sync+backup:1", 4, {10}, {0.97});
  backup.runs[0].result->summary.samples = 304;
  backup.runs[0].result->times.resize(4);
  for (WorkerMetrics& worker : backup.runs[0].result->times) worker.samples = 100;
  const auto lines = printed(made_up_comparison({backup}));
  EXPECT_EQ(lines.back(), "  24 % of the gradients came too late and were dropped");
}

TEST(ClaimsTable, HasEachClaimOnceWithItsSize) {
  const Comparison comparison = scaled(
      {made_up_variant("a", 1, kSlow, kGood), asynchronous(made_up_variant("b", 8, kFast, kPoor))});
  const Table table = claims_table(comparison);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].name, "a took longer than b");
  EXPECT_EQ(table.rows[0].cells[0], "3.9x");
  EXPECT_TRUE(contains_words(table.rows[0].cells[1], "x to 4."));
  EXPECT_EQ(table.rows[1].name, "a ended more accurate than b");
  EXPECT_EQ(table.rows[1].cells[0], "1.40 points");
  EXPECT_EQ(table.rows[1].cells[2], "95 %");
  std::stringstream text;
  print_verdict(text, comparison, verdict(comparison));
  EXPECT_TRUE(contains_words(text.str(), "\na took longer than b"));
  EXPECT_TRUE(contains_words(html_page(comparison), "<h2>Claims</h2>"));
  const Comparison alike =
      scaled({made_up_variant("a", 1, kFast, kGood), made_up_variant("b", 8, kFast, kGood)});
  EXPECT_TRUE(claims_table(alike).rows.empty());
  EXPECT_FALSE(contains_words(html_page(alike), "<h2>Claims</h2>"));
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
