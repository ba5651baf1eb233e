// Tests processes of `syncopate-bench compare --share-runs`, which train one comparison together.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

const Words kVirtual =
    kSmall + as_words("--clock virtual --jobs 1 --strategies mirrored,parameter-server:async");
const Words kThreeSeeds = kVirtual + as_words("--seeds 3");
// A run takes long enough to be stopped while it trains.
const Words kLong = kVirtual + as_words("--seeds 2 --epochs 200");
const Words kSearch = kVirtual + as_words("--tune");

// Returns the files of all runs in the folder of a report, with their contents, and any locks.
std::map<std::string, std::string> runs_in(const fs::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    const fs::path path = entry.path().lexically_relative(dir);
    const bool is_lock = path.extension() == ".lock";  // not of a folder, ".lock", which stays
    if (is_lock || path.parent_path().filename() == "runs") {
      files[path.string()] = entry.is_directory() ? "" : read_text(entry.path());
    }
  }
  return files;
}

// Returns the report of a process without its last line, which names the folder, and without the
// guess how long more seeds take, which depends on the speed of the machine.
std::string answer_of(const ProgramResult& result) {
  std::string text = result.out.substr(0, result.out.find("\nFigure and method"));
  const std::string guess = " (about 1 minute)";
  const std::size_t at = text.find(guess);
  return at == std::string::npos ? text : text.erase(at, guess.size());
}

// Returns how many runs the processes say that they trained.
int trained_by(const std::vector<ProgramResult>& results) {
  int count = 0;
  for (const ProgramResult& result : results) {
    for (const std::string& line : split(result.err, '\n')) {
      if (line.find("test accuracy") != std::string::npos) ++count;
    }
  }
  return count;
}

// Returns the command line of a comparison whose report does not repeat the command.
Words brief(const fs::path& report, const Words& more) {
  Words words = compare(report, more);
  std::erase(words, "--explain");
  return words;
}

class SharedRuns : public Compare {
 protected:
  std::unique_ptr<RunningProgram> start(const Words& more) const {
    return std::make_unique<RunningProgram>(brief(dir_, more + Words{"--share-runs"}));
  }
  // Starts a process and stops it while it trains a run of the folder `runs`.
  std::unique_ptr<RunningProgram> start_and_stop(const Words& more, const fs::path& runs) const {
    fs::create_directories(runs);
    auto process = start(more);
    const auto trains = [&] {
      return std::ranges::any_of(fs::directory_iterator(runs), [](const auto& entry) {
        return entry.path().extension() == ".lines";
      });
    };
    EXPECT_TRUE(process->wait_until(runs, trains)) << process->err_so_far();
    process->send(SIGSTOP);
    return process;
  }
  // Waits until the folder has this many runs. The stopped process trains the only missing run.
  static bool waits_for_runs(const RunningProgram& process, const fs::path& runs, int count) {
    return process.wait_until(runs, [&] {
      return count <= std::ranges::count_if(fs::directory_iterator(runs), [](const auto& entry) {
               return entry.path().extension() == ".jsonl";
             });
    });
  }
  ProgramResult alone(const Words& more) const {
    return successful(run_program(brief(scratch_ / "alone", more)));
  }
  // Expects the runs and the answers that one process gives.
  void expect_result_of_one(const Words& more, const std::vector<ProgramResult>& results) const {
    const std::string answer = answer_of(alone(more));
    for (const ProgramResult& result : results) EXPECT_EQ(answer_of(successful(result)), answer);
    EXPECT_EQ(runs_in(dir_), runs_in(scratch_ / "alone"));
    EXPECT_FALSE(runs_in(dir_).empty());
  }
};

TEST_F(SharedRuns, AreThoseOfOneProcessWithTheSameAnswer) {
  std::vector<std::unique_ptr<RunningProgram>> processes;
  for (int i = 0; i < 3; ++i) processes.push_back(start(kThreeSeeds));
  std::vector<ProgramResult> results;
  for (const auto& process : processes) results.push_back(process->wait());
  expect_result_of_one(kThreeSeeds, results);
  EXPECT_EQ(trained_by(results), 6) << "each run once";
}

TEST_F(SharedRuns, AreTheRoundsOfASearchToo) {
  const auto first = start(kSearch);
  const auto second = start(kSearch);
  expect_result_of_one(kSearch, {first->wait(), second->wait()});
  EXPECT_TRUE(fs::exists(dir_ / "tuning" / "2"));
}

TEST_F(SharedRuns, AreTheClustersOfAMapToo) {
  const Words map = kSmall + as_words(
                                 "--clusters equal,jitter --seeds 2 --jobs 1 --strategies "
                                 "mirrored,parameter-server:async");
  const auto first = start(map);
  const auto second = start(map);
  expect_result_of_one(map, {first->wait(), second->wait()});
  EXPECT_EQ(read_text(dir_ / "map.csv"), read_text(scratch_ / "alone" / "map.csv"));
}

TEST_F(SharedRuns, OfALivingProcessAreWaitedFor) {
  const auto first = start_and_stop(kLong, dir_ / "runs");
  const auto second = start(kLong);
  EXPECT_TRUE(waits_for_runs(*second, dir_ / "runs", 3)) << second->err_so_far();
  first->send(SIGCONT);
  const std::vector<ProgramResult> results = {first->wait(), second->wait()};
  expect_result_of_one(kLong, results);
  EXPECT_EQ(trained_by(results), 4) << "each run once";
}

TEST_F(SharedRuns, OfAKilledProcessAreTrainedByAnother) {
  const Words words = kSearch + as_words("--epochs 100");
  const fs::path round = dir_ / "tuning" / "1" / "runs";
  const auto first = start_and_stop(words, round);
  const auto second = start(words);
  EXPECT_TRUE(waits_for_runs(*second, round, 9)) << second->err_so_far();
  first->send(SIGKILL);
  expect_result_of_one(words, {second->wait()});
}

TEST_F(SharedRuns, AreNotWaitedForAfterASignal) {
  const auto first = start_and_stop(kLong, dir_ / "runs");
  const auto second = start(kLong);
  EXPECT_TRUE(waits_for_runs(*second, dir_ / "runs", 3)) << second->err_so_far();
  second->send(SIGTERM);
  expect_failure(second->wait(), 1, {"stopped; the same command continues with the missing runs"});
  first->send(SIGCONT);
  expect_result_of_one(kLong, {first->wait()});
}

TEST_F(SharedRuns, AreKeptFromOtherCommands) {
  const auto first = start_and_stop(kLong, dir_ / "runs");
  const std::string description = read_text(dir_ / "comparison.json");
  const auto files = runs_in(dir_);
  for (const Words& more : {as_words("--share-runs --seeds 3"), as_words("--share-runs --replace"),
                            as_words("--share-runs --tune"), Words{}}) {
    expect_failure_in_one_line(run(kLong + more), 2,
                               {"another comparison is using this folder (the job of process "});
  }
  EXPECT_EQ(read_text(dir_ / "comparison.json"), description);
  EXPECT_EQ(runs_in(dir_), files);
  first->send(SIGCONT);
  successful(first->wait());
  expect_failure_in_one_line(run(kLong + as_words("--share-runs --seeds 1")), 2,
                             {"has another comparison, 4 runs of 2 variants: "});
}

TEST_F(SharedRuns, NeedTheVirtualClockAndAGivenStepTime) {
  const std::pair<Words, const char*> mistakes[] = {
      {as_words("--clock real"), "real runs would disturb the times of each other"},
      {as_words("--clusters equal --step-time measure"), "give --step-time MILLISECONDS"}};
  for (const auto& [words, message] : mistakes) {
    expect_failure_in_one_line(run(kSmall + words + Words{"--share-runs"}), 2,
                               {"--share-runs: ", message});
  }
  EXPECT_FALSE(fs::exists(dir_));
}

}  // namespace
}  // namespace syncopate::test
