// Tests what `syncopate-bench compare` does about learning rates that are not tuned.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

using nlohmann::json;

const Words kLargeRate =
    kSmall + as_words(
                 "--clock virtual --strategies mirrored,parameter-server:async -- --optimizer "
                 "momentum --learning-rate 0.5");
constexpr const char* kTooLarge = "is too large for stale gradients";
constexpr const char* kShortRun = "one worker without momentum, 100 updates at ";

TEST_F(Compare, MakesNoClaimAboutARateThatIsTooLargeForStaleGradients) {
  const ProgramResult result = successful(run(kLargeRate));
  EXPECT_TRUE(contains(result.err, kShortRun, ": diverged\n", ", stable\n"));
  EXPECT_TRUE(contains(in_one_line(result.out), kTooLarge));
  EXPECT_TRUE(contains(in_one_line(read_text(dir_ / "report.html")), kTooLarge));
  const json variants = json::parse(read_text(dir_ / "comparison.json")).at("variants");
  EXPECT_FALSE(variants[0].contains("stable_rate")) << "synchronous";
  // 0.5 * 2 / (1 - 0.9), halved until it is stable.
  const double halvings = std::log2(10.0 / variants[1].at("stable_rate").get<double>());
  EXPECT_NEAR(halvings, std::round(halvings), 1e-9);
  EXPECT_GE(halvings, 1.0);
}

TEST_F(Compare, KeepsTheStableRateForReportsAndForMoreRuns) {
  successful(run(kLargeRate));
  fs::remove(dir_ / "comparison.json");
  const ProgramResult report = successful(run_program({SYNCOPATE_BENCH, "report", dir_}));
  EXPECT_TRUE(contains(in_one_line(report.out), kTooLarge));
  Words more = kLargeRate;
  more.insert(more.begin(), {"--first-seed", "1"});
  Words command = compare(dir_, more);
  *(std::ranges::find(command, "--seeds") + 1) = "2";
  const ProgramResult again = successful(run_program(command));
  EXPECT_TRUE(lacks(again.err, kShortRun)) << again.err;
  EXPECT_TRUE(contains(in_one_line(again.out), kTooLarge));
}

TEST_F(Compare, SearchesNoStableRateForRatesThatWereChosen) {
  const ProgramResult given =
      successful(run(kSmall + as_words("--clock virtual --strategies "
                                       "mirrored,parameter-server:async{learning-rate=0.5}")));
  EXPECT_TRUE(lacks(given.err, "updates at "));
  EXPECT_TRUE(lacks(read_text(dir_ / "comparison.json"), "stable_rate"));
}

TEST_F(Compare, SearchesTheStableRateOnceForAllClusters) {
  const ProgramResult result =
      successful(run(kSmall + as_words("--clusters equal,jitter --strategies "
                                       "mirrored,parameter-server:async,parameter-server:ssp:1")));
  EXPECT_TRUE(contains(result.err, "one worker, 100 updates at 0.002: "));
  EXPECT_EQ(result.err.find("updates at"), result.err.rfind("updates at")) << result.err;
}

}  // namespace
}  // namespace syncopate::test
