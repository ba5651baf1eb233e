// Tests `syncopate-bench compare --clusters` as a program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/scratch_dir.h"

namespace syncopate::test {
namespace {

const Words kVariants{"--strategies", "one-device,mirrored,parameter-server:async"};

TEST(MapOfStrategies, ComparesTheSameVariantsOnEachCluster) {
  const ScratchDir scratch;
  const fs::path dir = scratch / "m";
  const Words command =
      kSmall + kVariants + Words{"--clusters", "equal,jitter,mine{slow-worker=3x}"};
  const ProgramResult result = run_compare(dir, command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(last_line(result.out), "Figure and method: " + (dir / "report.html").string());
  EXPECT_NE(result.out.find("On the cluster mine:"), std::string::npos) << result.out;
  for (const char* cluster : {"equal", "jitter", "mine"}) {
    EXPECT_EQ(names_in(dir / cluster / "runs").size(), 3U);
    EXPECT_TRUE(fs::exists(dir / cluster / "report.html"));
  }
  for (const char* file : {"report.html", "map.svg", "map.csv", "map.json"}) {
    EXPECT_TRUE(fs::exists(dir / file)) << file;
  }
  const ProgramResult again = RunningProgram({SYNCOPATE_BENCH, "report", dir, "--explain"}).wait();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, result.out);
  const ProgramResult brief = RunningProgram({SYNCOPATE_BENCH, "report", dir}).wait();
  EXPECT_EQ(brief.out.find("On the cluster"), std::string::npos) << brief.out;
  EXPECT_NE(brief.out.find("(or --explain)"), std::string::npos) << brief.out;
}

TEST(MapOfStrategies, GoesOnWhereItWasInterrupted) {
  const ScratchDir scratch;
  const fs::path dir = scratch / "m";
  const Words command = kSmall + kVariants + Words{"--clusters", "equal,jitter"};
  ASSERT_EQ(run_compare(dir, command).exit_code, 0);
  const fs::path run = dir / "jitter" / "runs" / "mirrored-seed1.jsonl";
  const std::string before = read_text(run);
  fs::remove(run);
  const ProgramResult result = run_compare(dir, command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("5 of 6 runs are there already"), std::string::npos) << result.err;
  EXPECT_EQ(read_text(run), before);
  const ProgramResult more =
      run_compare(dir, kSmall + kVariants + Words{"--clusters", "equal,jitter,slow-link"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_NE(more.err.find("6 of 9 runs are there already"), std::string::npos) << more.err;
}

TEST(MapOfStrategies, RefusesAFolderOfAnotherComparison) {
  const ScratchDir scratch;
  const fs::path dir = scratch / "m";
  const Words map = kSmall + kVariants + Words{"--clusters", "equal,jitter"};
  ASSERT_EQ(run_compare(dir, map).exit_code, 0);
  const ProgramResult other = run_compare(dir, kSmall + kVariants + Words{"--clusters", "equal"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("the cluster jitter, which this command leaves out"), std::string::npos)
      << other.err;
  const ProgramResult plain = run_compare(dir, kSmall + kVariants + Words{"--clock", "virtual"});
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_NE(plain.err.find("has a comparison on several clusters"), std::string::npos) << plain.err;
  ASSERT_EQ(
      run_compare(dir, kSmall + kVariants + Words{"--clock", "virtual", "--replace"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(dir / "map.json"));
  EXPECT_EQ(names_in(dir / "runs").size(), 3U);
  const ProgramResult back = run_compare(dir, map);
  EXPECT_EQ(back.exit_code, 2);
  EXPECT_NE(back.err.find("has a comparison on one cluster"), std::string::npos) << back.err;
}

TEST(MapOfStrategies, RefusesMistakesWithOneLine) {
  const ScratchDir scratch;
  const std::pair<Words, const char*> mistakes[] = {
      {{"--clusters", "eqal"}, "expected equal, jitter"},
      {{"--clusters", "mine{}"}, "expected flags in braces"},
      {{"--clusters", "equal", "--preset", "one-slow"}, "--clusters: --preset has its own"},
      {{"--clusters", "equal", "--slow", "worker=0,factor=2"}, "--slow: --clusters describes each"},
      {{"--clusters", "equal", "--clock", "real"}, "leave --clock real out"},
      {{"--clusters", "equal", "--strategies", "mirrored"}, "expected two variants or more"},
      {{"--clusters", "mine{kill=worker=5,at=1s}"}, "expected a worker from 0 to 1"},
      {{"--step-time", "2"}, "--step-time requires --clusters"},
      {{"--clusters", "equal", "--step-time", "0"}, "--step-time 0"},
      {{"--slow-worker", "4"}, "expected a factor such as 4x"}};
  for (const auto& [words, expected] : mistakes) {
    const ProgramResult result = run_compare(scratch / "r", kSmall + words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(expected), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace syncopate::test
