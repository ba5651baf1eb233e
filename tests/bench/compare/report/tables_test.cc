#include "bench/compare/report/tables.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "bench/plots/terminal_table.h"
#include "bench/plots/text.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

// Returns the cells of the column with this head, "NAME UNIT"; none if there is no such column.
std::vector<std::string> column(const Table& table, const std::string& head) {
  std::vector<std::string> cells;
  for (std::size_t i = 1; i < table.heads.size(); ++i) {
    if (table.heads[i].name + " " + table.heads[i].unit != head) continue;
    for (const TableRow& row : table.rows) cells.push_back(row.cells[i - 1]);
  }
  return cells;
}

std::vector<std::string> printed(const Table& table) {
  std::stringstream text;
  print_columns(text, table);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

Comparison with_a_missed_run() {
  ComparedVariant sometimes = made_up_variant("sometimes", 2, {10, 12}, {0.97, 0.97});
  sometimes.runs.push_back(made_up_run(3, {0.5}, 0.1));
  return made_up_comparison({made_up_variant("a", 1, {40, 42, 44}, {0.97, 0.97, 0.97}), sometimes});
}

TEST(ResultsTable, HasMeansWithDeviationsAndCountsOfRunsThatReachedTheTarget) {
  const Table table = results_table(outcome_of("", with_a_missed_run()));
  EXPECT_EQ(column(table, "to 95 % mean, s"), (std::vector<std::string>{"42.0\n± 2.00", "2 of 3"}));
  EXPECT_EQ(column(table, "samples to 95 %"), (std::vector<std::string>{"200", "-"}));
  EXPECT_EQ(column(table, "updates x batch").front(), "3 x 100");
  EXPECT_EQ(column(table, "accuracy final, %").front(), "97.00\n± 0.00");
}

// Two workers with two threads and three servers; three replicas in one process.
TEST(ResultsTable, CountsTheProcessesAndCpusOfEachVariant) {
  ComparedVariant async = made_up_variant("async", 2, {10}, {0.97});
  async.threads_per_worker = 2;
  async.servers = 3;
  ComparedVariant mirrored = made_up_variant("mirrored", 3, {20}, {0.97});
  mirrored.is_distributed = false;
  const Outcome outcome = outcome_of("", made_up_comparison({async, mirrored}));
  const Table table = results_table(outcome);
  EXPECT_EQ(column(table, "CPUs processes"), (std::vector<std::string>{"7\nin 5", "3\nin 1"}));
  EXPECT_EQ(column(table, "CPU-s to 95 %"), (std::vector<std::string>{"70.0", "60.0"}));
  EXPECT_EQ(column(answer_table(outcome), "CPUs "), (std::vector<std::string>{"7", "3"}));
}

TEST(AnswerTable, HasALineForFailuresAndForPendingRuns) {
  const auto lines = printed(answer_table(outcome_of(
      "", made_up_comparison(
              {ComparedVariant{"async", 2, {failed_run(2, "it\nbroke\x1b[2J"), pending_run()}},
               ComparedVariant{"ssp", 2, {made_up_run(1, {0.97}, 0.1), pending_run()}}}))));
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_TRUE(contains_words(lines[1], "failed"));
  EXPECT_EQ(lines[2], "  failed, seed 2: it broke?[2J");
  EXPECT_EQ(lines[3], "  not yet trained: 1 run");
  EXPECT_TRUE(contains_words(lines[4], "pending"));
}

TEST(AnswerTable, HasOneLineForRowsThatAreEqual) {
  Comparison comparison =
      scaled({made_up_variant("a", 2, kFast, kGood), made_up_variant("b", 2, kFast, kGood),
              made_up_variant("c", 2, kSlow, kGood)});
  for (const std::size_t row : {0, 1}) {
    for (ComparedRun& run : comparison.variants[row].runs) run.result->summary.weights_hash = "h";
  }
  const Table table = answer_table(outcome_of("", comparison));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].notes.front(), "and, with the same bits and times, b");
}

TEST(Tables, FitIntoAHundredColumnsWithLongLabels) {
  const std::string words =
      "parameter-server:ssp:2+inverse, momentum 0.9, learning rate / workers, ";
  const Outcome outcome = outcome_of(
      "", made_up_comparison(
              {made_up_variant(words + words + std::string(150, 'x'), 128, {123456, 234567},
                               {0.97, 0.96}),
               ComparedVariant{"b", 2, {failed_run(1, std::string(250, 'y') + words)}}}));
  for (const Table& table : {answer_table(outcome), results_table(outcome)}) {
    for (const std::string& line : printed(table)) EXPECT_LE(width_of(line), 100U) << line;
  }
}

TEST(TestsTable, HasEachPairWithItsLevel) {
  const Table table =
      tests_table(outcome_of("", scaled({made_up_variant("a", 1, kSlow, kGood),
                                         asynchronous(made_up_variant("b", 8, kFast, kPoor))})));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].name, "a and b");
  EXPECT_EQ(table.rows[0].cells[0], "time 3.9x");
  EXPECT_TRUE(contains_words(table.rows[0].cells[1], "x to 4."));
  EXPECT_EQ(table.rows[0].cells[3], "3.5 %");
  EXPECT_EQ(table.rows[1].cells[0], "1.40 points");
  EXPECT_EQ(table.rows[1].cells[3], "1.5 %");
  EXPECT_EQ(column(table, "shown "), (std::vector<std::string>{"yes", "yes"}));
}

}  // namespace
}  // namespace syncopate::bench
