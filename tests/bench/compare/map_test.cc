// Tests `syncopate-bench compare --clusters` as a program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/compare/compare_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

class MapOfStrategies : public Compare {};

const Words kVariants{"--strategies", "one-device,mirrored,parameter-server:async"};

TEST_F(MapOfStrategies, ComparesTheSameVariantsOnEachCluster) {
  const Words command =
      kSmall + kVariants + Words{"--clusters", "equal,jitter,mine{slow-worker=3x}"};
  const ProgramResult result = successful(run(command));
  EXPECT_EQ(last_line(result.out), "Figure and method: " + (dir_ / "report.html").string());
  EXPECT_TRUE(contains(result.out, "On the cluster mine:"));
  for (const char* cluster : {"equal", "jitter", "mine"}) {
    EXPECT_EQ(names_in(dir_ / cluster / "runs").size(), 3U);
    EXPECT_TRUE(fs::exists(dir_ / cluster / "report.html"));
  }
  for (const char* file : {"report.html", "map.svg", "map.csv", "map.json"}) {
    EXPECT_TRUE(fs::exists(dir_ / file)) << file;
  }
  const std::string answer =
      nlohmann::json::parse(read_text(dir_ / "map.json"))["answer"]["sentence"];
  EXPECT_TRUE(contains(result.out, answer)) << answer;
  const ProgramResult again =
      successful(run_program({SYNCOPATE_BENCH, "report", dir_, "--explain"}));
  // A command that trains nothing does not know how long a run takes.
  const auto without_minutes = [](const std::string& text) {
    return std::regex_replace(text, std::regex(" \\(about [0-9]+ minutes?\\)"), "");
  };
  EXPECT_EQ(without_minutes(again.out), without_minutes(result.out));
  const ProgramResult brief = run_program({SYNCOPATE_BENCH, "report", dir_});
  EXPECT_FALSE(contains(brief.out, "On the cluster"));
  EXPECT_TRUE(contains(brief.out, "(or --explain)"));
}

TEST_F(MapOfStrategies, GoesOnWhereItWasInterrupted) {
  const Words command = kSmall + kVariants + Words{"--clusters", "equal,jitter"};
  successful(run(command));
  const fs::path lines = dir_ / "jitter" / "runs" / "mirrored-seed1.jsonl";
  const std::string before = read_text(lines);
  fs::remove(lines);
  const ProgramResult result = successful(run(command));
  EXPECT_TRUE(contains(result.err, "5 of 6 runs are there already"));
  EXPECT_EQ(read_text(lines), before);
  const ProgramResult more =
      successful(run(kSmall + kVariants + Words{"--clusters", "equal,jitter,slow-link"}));
  EXPECT_TRUE(contains(more.err, "6 of 9 runs are there already"));
}

TEST_F(MapOfStrategies, RefusesAFolderOfAnotherComparison) {
  const Words map = kSmall + kVariants + Words{"--clusters", "equal,jitter"};
  successful(run(map));
  expect_failure(run(kSmall + kVariants + Words{"--clusters", "equal"}), 2,
                 {"the cluster jitter, which this command leaves out"});
  expect_failure(run(kSmall + kVariants + Words{"--clock", "virtual"}), 2,
                 {"has a comparison on several clusters"});
  successful(run(kSmall + kVariants + Words{"--clock", "virtual", "--replace"}));
  EXPECT_FALSE(fs::exists(dir_ / "map.json"));
  EXPECT_EQ(names_in(dir_ / "runs").size(), 3U);
  expect_failure(run(map), 2, {"has a comparison on one cluster"});
}

// Makes the map say that its step time was measured, which tests cannot count on.
void pretend_measured(const fs::path& dir_) {
  std::string text = read_text(dir_ / "map.json");
  const std::string given = R"("source": "given")";
  ASSERT_TRUE(contains(text, given));
  text.replace(text.find(given), given.size(), R"("source": "measured")");
  std::ofstream(dir_ / "map.json") << text;
}

TEST_F(MapOfStrategies, GoesOnWithTheStepTimeThatItMeasured) {
  const Words map = kSmall + kVariants + Words{"--clusters", "equal,jitter"};
  const Words measure = map + Words{"--step-time", "measure"};
  successful(run(map + Words{"--step-time", "0.83"}));
  pretend_measured(dir_);
  const fs::path lines = dir_ / "jitter" / "runs" / "mirrored-seed1.jsonl";
  const std::string before = read_text(lines);
  for (const Words& more : {Words{}, Words{"--replace"}}) {
    fs::remove(lines);
    const ProgramResult result = successful(run(measure + more));
    EXPECT_TRUE(contains(in_one_line(result.err), "step time 0.83 ms, measured (stored in " +
                                                      (dir_ / "map.json").string() + ")"))
        << result.err;
    EXPECT_TRUE(contains(result.err, "5 of 6 runs are there already"));
    EXPECT_EQ(read_text(lines), before);
  }
  const ProgramResult other = run(map + Words{"--step-time", "0.84"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err,
                       "has a map with the step time 0.83 ms, measured, not 0.84 ms; choose "
                       "another folder"));
  EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1) << other.err;
  const ProgramResult wider = run(measure + Words{"--workers", "3"});
  EXPECT_EQ(wider.exit_code, 2) << "the step time fits, but the workers do not";
  EXPECT_TRUE(contains(wider.err, "has another comparison"));
}

TEST_F(MapOfStrategies, FindsTheFolderWithItsMeasuredStepTimeWithoutReport) {
  fs::create_directories(scratch_ / "here");
  const auto run_here = [&](const std::string& step_time) {
    Words words =
        compare("", kSmall + kVariants + Words{"--clusters", "equal", "--step-time", step_time});
    const auto report = std::ranges::find(words, "--report");
    words.erase(report, report + 2);
    return run_program(
        Words{"/bin/sh", "-c", R"(cd "$1" && shift && exec "$@")", "sh", scratch_ / "here"} +
        words);
  };
  successful(run_here("1.5"));
  successful(run_here("0.83"));
  pretend_measured(scratch_ / "here" / "map-2");
  const fs::path lines = scratch_ / "here" / "map-2" / "equal" / "runs" / "mirrored-seed1.jsonl";
  fs::remove(lines);
  const ProgramResult result = successful(run_here("measure"));
  EXPECT_TRUE(contains(result.err, "step time 0.83 ms, measured (stored in map-2/map.json)"));
  EXPECT_TRUE(fs::exists(lines));
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
TEST_F(MapOfStrategies, MeasuresTheStepTimeOrRefusesTwoThatDiffer) {
  const Words map =
      kSmall + as_words("--strategies one-device,mirrored --clusters equal --step-time measure");
  const ProgramResult result = run(map);
  const std::vector<double> times = milliseconds_in(in_one_line(result.err));
  if (result.exit_code == 2) {
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    ASSERT_EQ(times.size(), 2U) << result.err;
    // The message has three digits of numbers with a ratio above 1.1.
    EXPECT_GT(std::max(times[0], times[1]) / std::min(times[0], times[1]), 1.09) << result.err;
    EXPECT_FALSE(fs::exists(dir_));
    return;
  }
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_FALSE(times.empty()) << result.err;
  const ProgramResult again = successful(run(map));
  EXPECT_EQ(milliseconds_in(in_one_line(again.err)), times) << again.err;
  EXPECT_TRUE(contains(again.err, "2 of 2 runs are there already"));
}

TEST_F(MapOfStrategies, RefusesMistakesWithOneLine) {
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
    expect_failure_in_one_line(run_compare(scratch_ / "r", kSmall + words), 2, {expected});
  }
}

}  // namespace
}  // namespace syncopate::test
