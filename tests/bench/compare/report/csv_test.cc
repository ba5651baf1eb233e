#include "bench/compare/report/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Comparison three_kinds_of_runs() {
  ComparedVariant variant = made_up_variant("a, \"b\"", 2, {10}, {0.97});
  variant.runs[0].result->test_loss = NAN;
  variant.runs[0].result->weights_hash = "cafe";
  variant.runs.push_back(failed_run(2, "it broke"));
  variant.runs.push_back(pending_run());
  return made_up_comparison({variant});
}

TEST(RunsCsv, HasARowForEveryRun) {
  const auto lines = lines_of(runs_csv(three_kinds_of_runs()));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[1],
            "\"a, \"\"b\"\"\",2,runs/seed1.jsonl,done,1,,3,300,15,20,0,0.97,,0.95,10,"
            "200,0,0,0,0,,cafe");
  EXPECT_EQ(lines[2], "\"a, \"\"b\"\"\",2,runs/failed.jsonl,failed,2,it broke,,,,,,,,,,,,,,,,");
  EXPECT_EQ(lines[3], "\"a, \"\"b\"\"\",2,runs/pending.jsonl,pending,,,,,,,,,,,,,,,,,,");
}

TEST(RunsCsv, HasAsManyFieldsInEveryRow) {
  Comparison comparison = three_kinds_of_runs();
  comparison.variants[0].label = "plain";
  for (const std::string& line : lines_of(runs_csv(comparison))) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 21) << line;
  }
}

TEST(CurvesCsv, HasEveryPoint) {
  Comparison comparison = three_kinds_of_runs();
  comparison.variants[0].label = "plain";
  comparison.variants[0].runs[0].result->training.push_back(
      {.step = 1, .samples = 32, .seconds = 0.5, .loss = 2.25, .samples_per_second = 64});
  const auto lines = lines_of(curves_csv(comparison));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1], "plain,2,1,test,1,100,5,0.5,0.5,");
  EXPECT_EQ(lines[4], "plain,2,1,train,1,32,0.5,2.25,,64");
}

}  // namespace
}  // namespace syncopate::bench
