// Tests the folders of `syncopate-bench compare` as a program: which it refuses, numbers, continues
// and reads again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/scratch_dir.h"

namespace syncopate::test {
namespace {

TEST(Compare, RefusesAFolderOfAnotherComparisonAndReplacesItOnRequest) {
  const ScratchDir scratch;
  const fs::path dir = scratch / "r";
  const Words command = compare(dir, kSmall + Words{"--clock", "virtual"});
  const Words both{"--strategies", "parameter-server:async,mirrored"};
  ASSERT_EQ(RunningProgram(command + both).wait().exit_code, 0);
  const std::string before = read_text(dir / "comparison.json");
  for (const Words& more :
       {both + Words{"--workers", "3"}, both + Words{"--link-delay", "10ms"},
        both + Words{"--kill", "worker=1,at=0.1s"}, both + Words{"--clock", "real"},
        both + Words{"--target-accuracy", "0.6"}, both + Words{"--first-seed", "2"},
        Words{"--strategies", "one-device"}, Words{"--strategies", "mirrored"}}) {
    const ProgramResult result = RunningProgram(command + more).wait();
    EXPECT_EQ(result.exit_code, 2) << more.back();
    EXPECT_NE(result.err.find("has another comparison, 2 runs of 2 variants: "), std::string::npos)
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(read_text(dir / "comparison.json"), before) << more.back();
  }
  const ProgramResult more_seeds = RunningProgram(command + both + Words{"--seeds", "2"}).wait();
  EXPECT_EQ(more_seeds.exit_code, 0) << more_seeds.err;
  EXPECT_NE(more_seeds.err.find("2 of 4 runs are there already"), std::string::npos)
      << more_seeds.err;
  const ProgramResult replaced =
      RunningProgram(command + Words{"--strategies", "one-device", "--replace"}).wait();
  EXPECT_EQ(replaced.exit_code, 0) << replaced.err;
  EXPECT_EQ(names_in(dir / "runs"), Words{"one-device-seed1.jsonl"});
}

TEST(Compare, NumbersItsFoldersWithoutReport) {
  const ScratchDir scratch;
  fs::create_directories(scratch / "here");
  const Words in_folder{"/bin/sh", "-c", R"(cd "$1" && shift && exec "$@")", "sh",
                        scratch / "here"};
  const auto run_here = [&](const Words& more) {
    Words words = compare("", kSmall + Words{"--clock", "virtual", "--strategies", "one-device"});
    const auto report = std::ranges::find(words, "--report");
    words.erase(report, report + 2);
    return RunningProgram(in_folder + words + more).wait();
  };
  const auto run = [&](const Words& more) {
    const ProgramResult result = run_here(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string line = last_line(result.out);
    return line.substr(line.rfind(' ') + 1);
  };
  EXPECT_EQ(run({}), "comparison/report.html");
  EXPECT_EQ(run({}), "comparison-2/report.html") << "the first is finished";
  EXPECT_EQ(run({"--seeds", "2"}), "comparison-3/report.html");
  fs::remove(scratch / "here" / "comparison-2" / "runs" / "one-device-seed1.jsonl");
  EXPECT_EQ(run({}), "comparison-2/report.html") << "its run is missing";
  const ProgramResult refused = run_here({"--replace", "--seeds", "3"});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("--replace requires --report"), std::string::npos) << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  EXPECT_EQ(names_in(scratch / "here" / "comparison" / "runs"), Words{"one-device-seed1.jsonl"});
}

TEST(Compare, TrainsTheSeedsFromTheFirstOn) {
  const ScratchDir scratch;
  const Words more = kSmall + Words{"--clock", "virtual", "--strategies", "one-device"};
  const ProgramResult result =
      run_compare(scratch / "r", more + Words{"--first-seed", "5", "--seeds", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(names_in(scratch / "r" / "runs"),
            (Words{"one-device-seed5.jsonl", "one-device-seed6.jsonl"}));
  ASSERT_EQ(run_compare(scratch / "all", more + Words{"--seeds", "5"}).exit_code, 0);
  EXPECT_EQ(read_text(scratch / "r" / "runs" / "one-device-seed5.jsonl"),
            read_text(scratch / "all" / "runs" / "one-device-seed5.jsonl"));
}

TEST(Compare, MakesTheReportAgainFromTheRuns) {
  const ScratchDir scratch;
  const fs::path dir = scratch / "r";
  ASSERT_EQ(run_compare(dir, kSmall + Words{"--clock", "virtual"}).exit_code, 0);
  const std::string runs = read_text(dir / "runs.csv");
  for (const char* page : {"comparison.json", "report.html", "runs.csv", "curves.csv"}) {
    fs::remove(dir / page);
  }
  const ProgramResult result = RunningProgram({SYNCOPATE_BENCH, "report", dir}).wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("comparison.json was missing and was made from the 5 runs"),
            std::string::npos)
      << result.out;
  EXPECT_EQ(read_text(dir / "runs.csv"), runs);
  EXPECT_TRUE(fs::exists(dir / "report.html"));
}

}  // namespace
}  // namespace syncopate::test
