// Tests `syncopate-bench compare --tune` as a program.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

using nlohmann::json;

const Words kTuned = kSmall + as_words(
                                  "--clock virtual --strategies mirrored,parameter-server:async "
                                  "--target-accuracy 0.5 --tune");

// Returns the descriptions of all rounds of tuning in the folder, without the machines, which have
// a date.
std::vector<json> rounds_in(const fs::path& dir) {
  std::vector<json> rounds;
  for (int round = 1; fs::exists(dir / "tuning" / std::to_string(round)); ++round) {
    rounds.push_back(
        json::parse(read_text(dir / "tuning" / std::to_string(round) / "comparison.json")));
    rounds.back().erase("machines");
  }
  return rounds;
}

class TunedCompare : public Compare {};

TEST_F(TunedCompare, GivesEachVariantTheSameNumberOfRunsOnSamplesThatItHoldsOut) {
  successful(run(kTuned));
  std::map<std::string, int> runs;
  std::set<std::string> seeds;
  for (const json& round : rounds_in(dir_)) {
    EXPECT_EQ(round.at("chance").at("validation_samples"), 51) << "a tenth of 512";
    for (const json& variant : round.at("variants")) {
      runs[variant.at("tuning_of")] += static_cast<int>(variant.at("runs").size());
    }
  }
  EXPECT_EQ(runs, (std::map<std::string, int>{{"mirrored", 12}, {"parameter-server:async", 12}}));
  const json comparison = json::parse(read_text(dir_ / "comparison.json"));
  EXPECT_EQ(comparison.at("chance").at("validation_samples"), 0) << "the report trains all samples";
  EXPECT_EQ(comparison.at("learning_rate_rule"), "tuned");
  const std::string page = read_text(dir_ / "report.html");
  EXPECT_TRUE(contains(page, "at the chosen values"));
  EXPECT_TRUE(contains(page, "12 runs of each variant"));
  std::set<double> rates;
  for (const json& round : rounds_in(dir_)) {
    for (const json& variant : round.at("variants")) {
      if (variant.at("tuning_of") != "mirrored") continue;
      rates.insert(variant.at("learning_rate").get<double>() *
                   variant.at("learning_rate_factor").get<double>());
    }
  }
  std::ostringstream tried;
  tried << std::setprecision(3) << ">" << *rates.begin() << " to " << *rates.rbegin() << "</td>";
  EXPECT_TRUE(contains(page, tried.str())) << "the rates that were tried";
  EXPECT_TRUE(fs::exists(dir_ / "plots/tuning-accuracy.svg"));
}

TEST_F(TunedCompare, TunesVariantsThatDifferOnlyInTheirFlags) {
  const char* larger = "mirrored{batch-size-per-replica=64}";
  successful(run(kSmall + as_words("--clock virtual --target-accuracy 0.5 --tune --strategies",
                                   std::string("mirrored,") + larger)));
  std::map<std::string, std::set<std::string>> files;
  const std::vector<json> rounds = rounds_in(dir_);
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    for (const json& variant : rounds[round].at("variants")) {
      for (const json& file : variant.at("runs")) {
        files[variant.at("tuning_of")].insert(std::to_string(round) + file.get<std::string>());
      }
    }
  }
  EXPECT_EQ(files["mirrored"].size(), 12U);
  EXPECT_EQ(files[larger].size(), 12U);
  const ProgramResult twice = run(kTuned + as_words("--strategies mirrored,mirrored --replace"));
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_TRUE(contains(twice.err, "the runs of mirrored and mirrored would have the same names"));
}

TEST_F(TunedCompare, TriesEachBatchOnce) {
  successful(
      run(as_words("--data synthetic:1x8x8:4:64 --clock virtual --strategies mirrored "
                   "--batch-size-per-replica 1 --tune batch-size")));
  int runs = 0;
  std::map<int, int> first;
  for (const json& round : rounds_in(dir_)) {
    for (const json& variant : round.at("variants")) {
      runs += static_cast<int>(variant.at("runs").size());
      if (runs <= 10) ++first[variant.at("batch_size")];
    }
  }
  EXPECT_EQ(first, (std::map<int, int>{{1, 5}, {2, 5}}));
  EXPECT_EQ(runs, 22) << "twice the grid, and two";
}

TEST_F(TunedCompare, SaysThatItsFolderHasAnotherSearchOrAnUnfinishedOne) {
  const ProgramResult first = successful(run(kTuned));
  EXPECT_TRUE(contains(in_one_line(first.out), "tuned: rates "));
  EXPECT_TRUE(contains(in_one_line(first.out), "judged its runs on 51 samples only"));
  const ProgramResult other = run(kTuned + as_words("--tune-seed 20001"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err,
                       "has the search of another command (other flags, or another "
                       "--tune-seed)"));
  fs::remove(dir_ / "comparison.json");
  fs::remove_all(dir_ / "runs");
  const ProgramResult unfinished = run_program({SYNCOPATE_BENCH, "report", dir_});
  EXPECT_EQ(unfinished.exit_code, 1);
  EXPECT_TRUE(contains(unfinished.err, "the search of --tune has not ended"));
}

TEST_F(TunedCompare, KeepsItsFolderFromTheSameComparisonWithoutTuning) {
  successful(run(kTuned));
  const Words untuned(kTuned.begin(), kTuned.end() - 1);
  const ProgramResult result = run(untuned);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "its variants are tuned, and this command has no --tune"));
  successful(run(untuned + Words{"--replace"}));
  EXPECT_FALSE(fs::exists(dir_ / "tuning"));
  EXPECT_TRUE(lacks(read_text(dir_ / "report.html"), "runs of each variant"));
}

TEST_F(TunedCompare, RefusesTheFolderOfAMapBeforeItsSearch) {
  const Words words = kSmall + as_words("--strategies one-device,mirrored");
  successful(run(words + as_words("--clusters equal,jitter")));
  const ProgramResult result = run(words + as_words("--clock virtual --tune"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "has a comparison on several clusters"));
  EXPECT_FALSE(fs::exists(dir_ / "tuning"));
}

TEST_F(TunedCompare, ContinuesInItsNumberedFolderAfterTheSearch) {
  fs::create_directories(scratch_ / "here");
  const Words in_folder = as_words("/bin/sh -c", std::string(R"(cd "$1" && shift && exec "$@")"),
                                   "sh", scratch_ / "here");
  Words words = compare("", kTuned);
  const auto report = std::ranges::find(words, "--report");
  words.erase(report, report + 2);
  const auto folder_of_report = [&] {
    const std::string line = last_line(successful(run_program(in_folder + words)).out);
    return line.substr(line.rfind(' ') + 1);
  };
  const fs::path first = scratch_ / "here" / "comparison";
  EXPECT_EQ(folder_of_report(), "comparison/report.html");
  fs::remove(first / "runs" / "mirrored-seed1.jsonl");
  EXPECT_EQ(folder_of_report(), "comparison/report.html") << "a run of the report is missing";
  fs::remove_all(first / "runs");
  fs::remove(first / "comparison.json");
  EXPECT_EQ(folder_of_report(), "comparison/report.html") << "the report had not begun";
  EXPECT_EQ(folder_of_report(), "comparison-2/report.html") << "the first is finished";
}

TEST_F(TunedCompare, ContinuesWithTheMissingRunsAndChoosesTheSameValues) {
  successful(run(kTuned));
  const std::string before = read_text(dir_ / "runs.csv");
  const std::vector<json> rounds = rounds_in(dir_);
  ASSERT_GE(rounds.size(), 2U);
  fs::remove_all(dir_ / "tuning" / "2");
  fs::remove(dir_ / rounds[0].at("variants")[0].at("runs")[0].get<std::string>());
  fs::remove_all(dir_ / "runs");
  const ProgramResult again = successful(run(kTuned));
  EXPECT_EQ(read_text(dir_ / "runs.csv"), before) << again.err;
  EXPECT_EQ(rounds_in(dir_), rounds);
}

TEST_F(TunedCompare, RefusesMistakesWithOneLine) {
  const std::pair<Words, const char*> mistakes[] = {
      {as_words("--tune rate"),
       "--tune rate: expected learning-rate, momentum, batch-size, sync-every or "
       "outer-learning-rate"},
      {as_words("--tune momentum"), "give -- --optimizer momentum"},
      {as_words("--tune --clusters jitter"), "in place of --clusters"},
      {as_words("--tune batch-size --same batch"), "leave one of them out"},
      {as_words("--split val=0.1"), "--split requires --tune"},
      {as_words("--tune --split val=2"), "--split"},
      {as_words("--tune --tune-seed 5"), "--tune-seed 5: expected a whole number from 2000"},
      {as_words("--tune-seed 20001"), "--tune-seed requires --tune"},
      {as_words("--tune --split val=0.0001"), "512 training samples would give 0 for validation"},
      {as_words("--tune --strategies mirrored --split val=0.9"),
       "--tune: the search trains 51 samples without those that judge its runs, fewer than the 64 "
       "of an update of mirrored; give a smaller --batch-size-per-replica or a smaller --split"},
      {as_words("--batch-size 64"), "--batch-size requires --same batch"},
      {as_words("--same batch --batch-size 65 --strategies mirrored"),
       "--batch-size 65 cannot be divided among 2 workers; give --batch-size 66"},
  };
  for (const auto& [words, message] : mistakes) {
    const ProgramResult result = run(kSmall + words);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
    EXPECT_FALSE(fs::exists(dir_ / "runs")) << message;
  }
}

// The largest batch of the first values, 64 samples per worker, does not fit into 100 samples.
TEST_F(TunedCompare, SearchesNoBatchThatTheSamplesDoNotFill) {
  successful(
      run(as_words("--data synthetic:1x8x8:4:112 --clock virtual --strategies mirrored "
                   "--tune batch-size --split val=0.1")));
  for (const json& round : rounds_in(dir_)) {
    for (const json& variant : round.at("variants")) {
      EXPECT_LE(variant.at("batch_size"), 50) << variant.at("label");
    }
  }
}

TEST_F(TunedCompare, RepeatsTheSearchWithOtherSeedsOnRequest) {
  const auto first_run = [&] {
    return rounds_in(dir_).front().at("variants")[0].at("runs")[0].get<std::string>();
  };
  successful(run(kTuned));
  EXPECT_TRUE(contains(first_run(), "seed10001"));
  const std::string of_first_seed = first_run();
  fs::remove_all(dir_);
  successful(run(kTuned + as_words("--first-seed 3")));
  EXPECT_EQ(first_run(), of_first_seed) << "the search does not depend on the seeds of the report";
  fs::remove_all(dir_);
  successful(run(kTuned + as_words("--tune-seed 20001")));
  EXPECT_TRUE(contains(first_run(), "seed20001"));
  EXPECT_TRUE(contains(read_text(dir_ / "report.html"), "with seeds from 20001 on"));
}

// Writes DIR/NAME.csv with two classes, which one of the two columns tells apart.
void write_csv(const fs::path& dir, const std::string& name, int samples) {
  std::ofstream out(dir / (name + ".csv"));
  out << "a,b,label\n";
  for (int i = 0; i < samples; ++i) {
    out << i % 2 << ',' << 0.01 * (i % 7) << ',' << i % 2 << '\n';
  }
}

TEST_F(TunedCompare, JudgesItsRunsOnTheValidationSplitThatTheDataHave) {
  fs::create_directory(scratch_ / "csv");
  write_csv(scratch_ / "csv", "train", 256);
  write_csv(scratch_ / "csv", "val", 40);
  write_csv(scratch_ / "csv", "test", 64);
  successful(run(as_words("--data", "csv:" + (scratch_ / "csv").string(),
                          "--clock virtual --strategies mirrored --tune")));
  for (const json& round : rounds_in(dir_)) {
    EXPECT_EQ(round.at("chance").at("validation_samples"), 40);
  }
  const json first = rounds_in(dir_).front().at("variants")[0].at("runs")[0];
  EXPECT_TRUE(lacks(read_text(dir_ / "tuning/1" / first.get<std::string>()), "\"--split\""));
  EXPECT_EQ(json::parse(read_text(dir_ / "comparison.json")).at("chance").at("validation_samples"),
            40);
  EXPECT_TRUE(contains(read_text(dir_ / "report.html"),
                       "on 40 samples, the same for all variants, that these runs did not"));
}

TEST_F(TunedCompare, SaysHowLongRealRunsWillTake) {
  const ProgramResult result = successful(
      run(kSmall + as_words("--strategies mirrored --tune --budget updates --updates 5")));
  EXPECT_TRUE(
      contains(result.err, "about 1 minute for 13 runs: 12 of the search and 1 of the report"));
  EXPECT_LT(result.err.find("about 1 minute for 13 runs"), result.err.find("tuning, round 1"));
  const ProgramResult again = successful(
      run(kSmall + as_words("--strategies mirrored --tune --budget updates --updates 5")));
  EXPECT_TRUE(lacks(again.err, "minute")) << "no run is missing";
}

TEST_F(TunedCompare, IsRefusedWithAPresetAndForAReplay) {
  const std::pair<Words, const char*> mistakes[] = {
      {as_words("--clock virtual --preset momentum"), "leave --preset or --tune out"},
      {as_words("--replay order --data digits"), "--tune: --replay computes what the job"}};
  for (const auto& [words, message] : mistakes) {
    const ProgramResult result = run_program(as_words(SYNCOPATE_BENCH, "compare --tune") + words);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
  }
}

// At one batch, one worker and several compute the same updates, but for the order of additions.
TEST_F(Compare, TrainsTheSameUpdatesWithAnyNumberOfWorkersAtTheSameBatch) {
  successful(run(kSmall + as_words("--clock virtual --same batch --batch-size 32 --epochs 1 "
                                   "--strategies one-device,mirrored,multi-worker-mirrored")));
  std::map<std::string, json> last;
  for (const char* name : {"one-device", "mirrored", "multi-worker-mirrored"}) {
    last[name] =
        metrics_lines(dir_ / "runs" / (std::string(name) + "-seed1.jsonl"), "summary").at(0);
  }
  for (const char* name : {"mirrored", "multi-worker-mirrored"}) {
    EXPECT_EQ(last[name].at("steps"), last["one-device"].at("steps"));
    EXPECT_EQ(last[name].at("samples"), last["one-device"].at("samples"));
    EXPECT_NEAR(last[name].at("train_loss").get<double>(),
                last["one-device"].at("train_loss").get<double>(), 1e-4);
  }
}

}  // namespace
}  // namespace syncopate::test
