// Tests `syncopate-bench compare --clusters` as a program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

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
  // A command that trains nothing does not know how long a run takes.
  const auto without_minutes = [](const std::string& text) {
    return std::regex_replace(text, std::regex(" \\(about [0-9]+ minutes?\\)"), "");
  };
  EXPECT_EQ(without_minutes(again.out), without_minutes(result.out));
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

// Makes the map say that its step time was measured, which tests cannot count on.
void pretend_measured(const fs::path& dir) {
  std::string text = read_text(dir / "map.json");
  const std::string given = R"("source": "given")";
  ASSERT_NE(text.find(given), std::string::npos) << text;
  text.replace(text.find(given), given.size(), R"("source": "measured")");
  std::ofstream(dir / "map.json") << text;
}

TEST(MapOfStrategies, GoesOnWithTheStepTimeThatItMeasured) {
  const ScratchDir scratch;
  const fs::path dir = scratch / "m";
  const Words map = kSmall + kVariants + Words{"--clusters", "equal,jitter"};
  const Words measure = map + Words{"--step-time", "measure"};
  ASSERT_EQ(run_compare(dir, map + Words{"--step-time", "0.83"}).exit_code, 0);
  pretend_measured(dir);
  const fs::path run = dir / "jitter" / "runs" / "mirrored-seed1.jsonl";
  const std::string before = read_text(run);
  for (const Words& more : {Words{}, Words{"--replace"}}) {
    fs::remove(run);
    const ProgramResult result = run_compare(dir, measure + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(
        in_one_line(result.err)
            .find("step time 0.83 ms, measured (stored in " + (dir / "map.json").string() + ")"),
        std::string::npos)
        << result.err;
    EXPECT_NE(result.err.find("5 of 6 runs are there already"), std::string::npos) << result.err;
    EXPECT_EQ(read_text(run), before);
  }
  const ProgramResult other = run_compare(dir, map + Words{"--step-time", "0.84"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("has a map with the step time 0.83 ms, measured, not 0.84 ms; choose "
                           "another folder"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1) << other.err;
  const ProgramResult wider = run_compare(dir, measure + Words{"--workers", "3"});
  EXPECT_EQ(wider.exit_code, 2) << "the step time fits, but the workers do not";
  EXPECT_NE(wider.err.find("has another comparison"), std::string::npos) << wider.err;
}

TEST(MapOfStrategies, FindsTheFolderWithItsMeasuredStepTimeWithoutReport) {
  const ScratchDir scratch;
  fs::create_directories(scratch / "here");
  const auto run_here = [&](const std::string& step_time) {
    Words words =
        compare("", kSmall + kVariants + Words{"--clusters", "equal", "--step-time", step_time});
    const auto report = std::ranges::find(words, "--report");
    words.erase(report, report + 2);
    return RunningProgram(
               Words{"/bin/sh", "-c", R"(cd "$1" && shift && exec "$@")", "sh", scratch / "here"} +
               words)
        .wait();
  };
  ASSERT_EQ(run_here("1.5").exit_code, 0);
  ASSERT_EQ(run_here("0.83").exit_code, 0);
  pretend_measured(scratch / "here" / "map-2");
  const fs::path run = scratch / "here" / "map-2" / "equal" / "runs" / "mirrored-seed1.jsonl";
  fs::remove(run);
  const ProgramResult result = run_here("measure");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("step time 0.83 ms, measured (stored in map-2/map.json)"),
            std::string::npos)
      << result.err;
  EXPECT_TRUE(fs::exists(run));
}

// Returns the numbers in front of "ms" in a text.
std::vector<double> milliseconds_in(const std::string& text) {
  std::vector<double> numbers;
  for (std::size_t end = text.find(" ms"); end != std::string::npos;
       end = text.find(" ms", end + 1)) {
    numbers.push_back(std::stod(text.substr(text.rfind(' ', end - 1) + 1)));
  }
  return numbers;
}

// On a busy machine the two measurements differ, and the command is refused.
TEST(MapOfStrategies, MeasuresTheStepTimeOrRefusesTwoThatDiffer) {
  const ScratchDir scratch;
  const fs::path dir = scratch / "m";
  const Words map = kSmall + Words{"--strategies", "one-device,mirrored", "--clusters",
                                   "equal",        "--step-time",         "measure"};
  const ProgramResult result = run_compare(dir, map);
  const std::vector<double> times = milliseconds_in(in_one_line(result.err));
  if (result.exit_code == 2) {
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    ASSERT_EQ(times.size(), 2U) << result.err;
    // The message has three digits of numbers with a ratio above 1.1.
    EXPECT_GT(std::max(times[0], times[1]) / std::min(times[0], times[1]), 1.09) << result.err;
    EXPECT_FALSE(fs::exists(dir));
    return;
  }
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_FALSE(times.empty()) << result.err;
  const ProgramResult again = run_compare(dir, map);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(milliseconds_in(in_one_line(again.err)), times) << again.err;
  EXPECT_NE(again.err.find("2 of 2 runs are there already"), std::string::npos) << again.err;
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
      {{"--clusters", "equal", "--step-time", "mesure"},
       "expected milliseconds above 0, or measure"},
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
