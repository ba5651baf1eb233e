// Tests the folders of `syncopate-bench compare` as a program: which it refuses, numbers, continues
// and reads again.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

TEST_F(Compare, RefusesAFolderOfAnotherComparisonAndReplacesItOnRequest) {
  const Words command = compare(dir_, kSmall + Words{"--clock", "virtual"});
  const Words both{"--strategies", "parameter-server:async,mirrored"};
  successful(run_program(command + both));
  const std::string before = read_text(dir_ / "comparison.json");
  for (const Words& more :
       {both + Words{"--workers", "3"}, both + Words{"--link-delay", "10ms"},
        both + Words{"--kill", "worker=1,at=0.1s"}, both + Words{"--clock", "real"},
        both + Words{"--target-accuracy", "0.6"}, both + Words{"--first-seed", "2"},
        Words{"--strategies", "one-device"}, Words{"--strategies", "mirrored"}}) {
    const ProgramResult result = run_program(command + more);
    EXPECT_EQ(result.exit_code, 2) << more.back();
    EXPECT_TRUE(contains(result.err, "has another comparison, 2 runs of 2 variants: "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(read_text(dir_ / "comparison.json"), before) << more.back();
  }
  const ProgramResult more_seeds = successful(run_program(command + both + Words{"--seeds", "2"}));
  EXPECT_TRUE(contains(more_seeds.err, "2 of 4 runs are there already"));
  successful(run_program(command + Words{"--strategies", "one-device", "--replace"}));
  EXPECT_EQ(names_in(dir_ / "runs"), Words{"one-device-seed1.jsonl"});
}

TEST_F(Compare, NumbersItsFoldersWithoutReport) {
  fs::create_directories(scratch_ / "here");
  const Words in_folder = as_words("/bin/sh -c", std::string(R"(cd "$1" && shift && exec "$@")"),
                                   "sh", scratch_ / "here");
  const auto run_here = [&](const Words& more) {
    Words words = compare("", kSmall + Words{"--clock", "virtual", "--strategies", "one-device"});
    const auto report = std::ranges::find(words, "--report");
    words.erase(report, report + 2);
    return run_program(in_folder + words + more);
  };
  const auto report_of = [&](const Words& more) {
    const ProgramResult result = successful(run_here(more));
    const std::string line = last_line(result.out);
    return line.substr(line.rfind(' ') + 1);
  };
  EXPECT_EQ(report_of({}), "comparison/report.html");
  EXPECT_EQ(report_of({}), "comparison-2/report.html") << "the first is finished";
  EXPECT_EQ(report_of({"--seeds", "2"}), "comparison-3/report.html");
  fs::remove(scratch_ / "here" / "comparison-2" / "runs" / "one-device-seed1.jsonl");
  EXPECT_EQ(report_of({}), "comparison-2/report.html") << "its run is missing";
  expect_failure_in_one_line(run_here({"--replace", "--seeds", "3"}), 2,
                             {"--replace requires --report"});
  EXPECT_EQ(names_in(scratch_ / "here" / "comparison" / "runs"), Words{"one-device-seed1.jsonl"});
}

TEST_F(Compare, TrainsTheSeedsFromTheFirstOn) {
  const Words more = kSmall + Words{"--clock", "virtual", "--strategies", "one-device"};
  successful(run(more + Words{"--first-seed", "5", "--seeds", "2"}));
  EXPECT_EQ(names_in(dir_ / "runs"), (Words{"one-device-seed5.jsonl", "one-device-seed6.jsonl"}));
  successful(run_compare(scratch_ / "all", more + Words{"--seeds", "5"}));
  EXPECT_EQ(read_text(dir_ / "runs" / "one-device-seed5.jsonl"),
            read_text(scratch_ / "all" / "runs" / "one-device-seed5.jsonl"));
}

TEST_F(Compare, DividesItsSpeedsByThoseOfAnotherComparison) {
  const Words words = kSmall + as_words("--clock virtual --strategies mirrored");
  successful(run(words));
  successful(run_compare(scratch_ / "slower", words + as_words("--service-time constant:2")));
  const Words report{SYNCOPATE_BENCH, "report", dir_, "--against"};
  EXPECT_TRUE(contains(successful(run_program(report + Words{scratch_ / "slower"})).out,
                       "mirrored           2.00          0.50\n",
                       "Largest error: 100 %, samples/s of mir"));
  successful(run_compare(scratch_ / "map", kSmall + as_words("--clusters equal,jitter --strategies "
                                                             "one-device,mirrored")));
  expect_failure_in_one_line(run_program(report + Words{scratch_ / "map"}), 2,
                             {"give the folder of one, such as"});
}

TEST_F(Compare, MakesTheReportAgainFromTheRuns) {
  successful(run(kSmall + Words{"--clock", "virtual"}));
  const std::string runs = read_text(dir_ / "runs.csv");
  for (const char* page : {"comparison.json", "report.html", "runs.csv", "curves.csv"}) {
    fs::remove(dir_ / page);
  }
  const ProgramResult result = successful(run_program({SYNCOPATE_BENCH, "report", dir_}));
  EXPECT_TRUE(contains(result.out, "comparison.json was missing and was made from the 5 runs"));
  EXPECT_EQ(read_text(dir_ / "runs.csv"), runs);
  EXPECT_TRUE(fs::exists(dir_ / "report.html"));
}

}  // namespace
}  // namespace syncopate::test
