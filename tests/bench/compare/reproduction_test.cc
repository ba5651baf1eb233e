// Tests `syncopate-bench report --verify` and `report --archive` as a program.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bench/compare/compare_program.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

using nlohmann::json;

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

// Replaces the only occurrence of `from` in the file.
void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = read_text(file);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << text;
  write_text(file, text.replace(at, from.size(), to));
}

// Writes a table of two classes with this number of samples.
void write_table(const fs::path& file, int samples) {
  std::string text = "x,y,label\n";
  for (int i = 0; i < samples; ++i) {
    text += std::to_string(i % 7) + "," + std::to_string(i * 3 % 11) + "," +
            std::to_string((i % 7) > 3 ? 1 : 0) + "\n";
  }
  write_text(file, text);
}

// A comparison on a small table, which the tests change.
class Reproduction : public Compare {
 protected:
  Reproduction() {
    fs::create_directories(data_);
    write_table(data_ / "train.csv", 256);
    write_table(data_ / "test.csv", 64);
  }

  ProgramResult compare_virtually(const Words& more = {}) const {
    return successful(run(as_words("--clock virtual --data", "csv:" + data_.string()) + more));
  }
  ProgramResult report(const Words& more) const {
    return run_program(Words{SYNCOPATE_BENCH, "report", dir_.string()} + more);
  }
  ProgramResult verify() const { return report({"--verify"}); }

  // Expects that --verify fails and prints a line with each of the texts.
  void expect_difference(const Words& texts) const {
    const ProgramResult result = verify();
    EXPECT_EQ(result.exit_code, 1) << result.err;
    const std::string line = last_line(result.err);
    for (const std::string& text : texts) EXPECT_TRUE(contains(line, text)) << result.err;
  }

  const fs::path data_ = scratch_ / "data";
};

const Words kTwo{"--strategies", "mirrored,parameter-server:async"};

TEST_F(Reproduction, FindsEqualWeightsAndChangesNoFile) {
  compare_virtually(kTwo + Words{"--seeds", "2"});
  const std::string before = read_text(dir_ / "comparison.json");
  const Words files = names_in(dir_);
  const ProgramResult result = successful(verify());
  EXPECT_TRUE(contains(result.out, "mirrored: equal (weights "));
  EXPECT_TRUE(contains(result.out, "parameter-server:async: equal (weights "));
  EXPECT_TRUE(
      contains(last_line(result.out), "2 variants trained again with equal weights and times."));
  EXPECT_EQ(read_text(dir_ / "comparison.json"), before);
  EXPECT_EQ(names_in(dir_), files);
}

TEST_F(Reproduction, NoticesOneChangedByteOfTheData) {
  compare_virtually(kTwo);
  const std::string hash = json::parse(read_text(dir_ / "comparison.json")).at("data_hash");
  replace_in(data_ / "train.csv", "\n3,9,0\n", "\n3,8,0\n");
  expect_difference({"the data set csv:", "is not that of the comparison: expected hash " + hash,
                     "; restore its files"});
  expect_failure(run(as_words("--clock virtual --data", "csv:" + data_.string()) + kTwo), 2,
                 {"the hash of the data set's contents is " + hash + ", not "});
}

TEST_F(Reproduction, NoticesOneChangedByteOfTheTestData) {
  compare_virtually(kTwo);
  replace_in(data_ / "test.csv", "\n3,9,0\n", "\n3,8,0\n");
  expect_difference({"the data set csv:"});
}

TEST_F(Reproduction, NoticesOneChangedFlagOfTheCommand) {
  compare_virtually(kTwo + Words{"--", "--learning-rate", "0.25"});
  replace_in(dir_ / "comparison.json", "--learning-rate 0.25", "--learning-rate 0.5");
  expect_difference(
      {"the runs are not those of the command in comparison.json: mirrored was "
       "trained with --learning-rate 0.25, not --learning-rate 0.5"});
}

TEST_F(Reproduction, NoticesOneChangedFlagOfARun) {
  compare_virtually(kTwo + Words{"--", "--learning-rate", "0.25"});
  replace_in(dir_ / "runs" / "mirrored-seed1.jsonl", R"("--learning-rate","0.25")",
             R"("--learning-rate","0.5")");
  expect_difference({"mirrored was trained with --learning-rate 0.5, not --learning-rate 0.25"});
}

TEST_F(Reproduction, NoticesAnotherNetwork) {
  successful(run(kSmall + as_words("--clock virtual --strategies mirrored")));
  replace_in(dir_ / "comparison.json", "--model mlp", "--model mnist-cnn");
  expect_difference({"the network mnist-cnn is not that of the comparison: expected hash "});
}

TEST_F(Reproduction, NoticesAnotherNetworkInItsFile) {
  const fs::path file = scratch_ / "net.json";
  write_text(file, successful(run_syncopate(as_words("network --model mlp --json --data",
                                                     "csv:" + data_.string())))
                       .out);
  compare_virtually(as_words("--strategies mirrored --model", "file:" + file.string()));
  successful(verify());
  replace_in(file, "128", "64");
  expect_difference({"the network file:", " is not that of the comparison: expected hash "});
}

TEST_F(Reproduction, NoticesOtherWeightsAndOtherTimes) {
  compare_virtually(kTwo);
  const fs::path file = dir_ / "runs" / "mirrored-seed1.jsonl";
  const std::string before = read_text(file);
  const std::size_t at = before.find(R"("weights_hash":")") + 16;
  const std::string hash = before.substr(at, 16);
  replace_in(file, hash, "0123456789abcdef");
  expect_difference(
      {"1 of 2 variants could not be reproduced: mirrored, seed 1: expected weights "
       "0123456789abcdef, found " +
       hash});
  write_text(file, before);
  replace_in(file, R"("trained_seconds":)", R"("trained_seconds":1)");
  expect_difference({"mirrored, seed 1: eval of step ", ": expected trained_seconds 1"});
}

TEST_F(Reproduction, FindsDataThatMoved) {
  compare_virtually(kTwo);
  fs::rename(data_, scratch_ / "moved");
  EXPECT_NE(verify().exit_code, 0);
  successful(report({"--verify", "--data", "csv:" + (scratch_ / "moved").string()}));
}

TEST_F(Reproduction, RepeatsTunedValuesWithoutTheSearch) {
  compare_virtually(Words{"--strategies", "mirrored", "--tune"});
  const ProgramResult result = successful(verify());
  EXPECT_TRUE(contains(result.out, "mirrored: equal"));
  const fs::path round = dir_ / "tuning" / "1" / "runs";
  replace_in(round / names_in(round).front(), R"("--learning-rate")", R"("--momentum")");
  expect_difference({(dir_ / "tuning" / "1").string(), "was trained with --momentum"});
}

TEST_F(Reproduction, RepeatsEachClusterOfAMap) {
  compare_virtually(kTwo + Words{"--clusters", "equal,jitter"});
  const ProgramResult result = successful(verify());
  EXPECT_TRUE(contains(result.out, "equal: mirrored: equal"));
  EXPECT_TRUE(contains(result.out, "jitter: parameter-server:async: equal"));
}

TEST_F(Reproduction, DoesNotCompareAsynchronousRunsOfTheRealClock) {
  successful(run(as_words("--data", "csv:" + data_.string()) + kTwo));
  const ProgramResult result = successful(verify());
  EXPECT_TRUE(contains(result.out, "mirrored: equal"));
  EXPECT_TRUE(
      contains(result.out, "parameter-server:async: not comparable (asynchronous, real clock)"));
  EXPECT_TRUE(contains(last_line(result.out),
                       "comparison, and 1 variant trained again with equal weights."));
}

TEST_F(Reproduction, RefusesAFolderWithoutTheCommand) {
  compare_virtually(kTwo);
  fs::remove(dir_ / "comparison.json");
  successful(report({}));
  expect_difference({"expected \"command\" to be a command of syncopate-bench compare"});
}

TEST_F(Reproduction, FailsIfAVariantHasNoRun) {
  compare_virtually(kTwo);
  fs::remove(dir_ / "runs" / "mirrored-seed1.jsonl");
  expect_difference({": mirrored has no result to verify"});
}

TEST_F(Reproduction, SaysIfNothingCouldBeCompared) {
  successful(run(as_words("--data", "csv:" + data_.string(),
                          "--workers 2 --strategies parameter-server:async")));
  EXPECT_TRUE(contains(last_line(successful(verify()).out), ", and nothing could be compared."));
}

TEST_F(Reproduction, RefusesFlagsOfWhichOneWouldBeIgnored) {
  const std::string archive = (scratch_ / "a.tar.gz").string();
  expect_failure_in_one_line(report({"--against", dir_.string(), "--verify"}), 2,
                             {"leave --against or --verify out"});
  expect_failure_in_one_line(report({"--against", dir_.string(), "--archive", archive}), 2,
                             {"leave --against or --archive out"});
  expect_failure_in_one_line(report({"--against", dir_.string(), "--explain"}), 2,
                             {"leave --against or --explain out"});
  expect_failure_in_one_line(report({"--verify", "--explain"}), 2,
                             {"leave --explain or --verify out"});
}

TEST_F(Reproduction, ArchivesWhatVerifiesTheComparison) {
  compare_virtually(kTwo);
  for (const char* name : {"notes.txt", "mine.json", "mine.csv"}) {
    write_text(dir_ / name, "not part of the comparison");
  }
  const fs::path file = scratch_ / "paper.tar.gz";
  const ProgramResult result = successful(report({"--archive", file.string()}));
  EXPECT_EQ(last_line(result.out), "Archive: " + file.string());
  successful(run_program(
      {"/bin/sh", "-c", R"(cd "$1" && tar -xzf paper.tar.gz)", "sh", scratch_.path().string()}));
  const fs::path unpacked = scratch_ / "paper";
  EXPECT_EQ(names_in(unpacked),
            (Words{"README.txt", "comparison.json", "curves.csv", "plots", "report.html", "runs",
                   "runs.csv", "staleness.csv", "workers.csv"}));
  EXPECT_EQ(names_in(unpacked / "runs"), names_in(dir_ / "runs"));
  EXPECT_FALSE(names_in(unpacked / "plots").empty());
  const json comparison = json::parse(read_text(unpacked / "comparison.json"));
  const std::string readme = read_text(unpacked / "README.txt");
  for (const char* key : {"command", "data_hash", "network_hash"}) {
    EXPECT_TRUE(contains(readme, comparison.at(key).get<std::string>())) << key;
  }
  fs::remove_all(dir_);
  successful(run_program({SYNCOPATE_BENCH, "report", unpacked.string(), "--verify"}));
}

TEST_F(Reproduction, KeepsAnArchiveThatExistsAndLeavesNoPartOfOne) {
  compare_virtually(Words{"--strategies", "mirrored"});
  const fs::path file = scratch_ / "paper.tar.gz";
  write_text(file, "an earlier archive");
  expect_failure_in_one_line(report({"--archive", file.string()}), 2, {"exists already"});
  EXPECT_EQ(read_text(file), "an earlier archive");
  expect_failure_in_one_line(report({"--archive", "paper.zip"}), 2, {"ends with .tar.gz"});
  const fs::path nowhere = scratch_ / "absent" / "paper.tar.gz";
  expect_failure_in_one_line(report({"--archive", nowhere.string()}), 1,
                             {"--archive", "cannot be written: tar"});
  const auto with_path = [&](const std::string& path) {
    return run_program(Words{"/usr/bin/env", "PATH=" + path, SYNCOPATE_BENCH, "report",
                             dir_.string(), "--archive", (scratch_ / "other.tar.gz").string()});
  };
  expect_failure_in_one_line(with_path("/nowhere"), 1, {"the program tar cannot be started"});
  const fs::path bin = scratch_ / "bin";
  fs::create_directories(bin);
  write_text(bin / "tar",
             "#!/bin/sh\necho half >$2\necho tar: No space left on device >&2\nexit 2\n");
  fs::permissions(bin / "tar", fs::perms::owner_all);
  expect_failure_in_one_line(with_path(bin.string()), 1,
                             {"cannot be written: tar: No space left on device"});
  EXPECT_EQ(names_in(scratch_.path()), (Words{"bin", "data", "paper.tar.gz", "r"}));
}

TEST_F(Reproduction, RecordsWhatTheRunsDependOn) {
  compare_virtually(Words{"--strategies", "mirrored"});
  const json comparison = json::parse(read_text(dir_ / "comparison.json"));
  EXPECT_EQ(comparison.at("data_hash").get<std::string>().size(), 16U);
  EXPECT_EQ(comparison.at("network_hash").get<std::string>().size(), 16U);
  EXPECT_TRUE(contains(comparison.at("network_layers").get<std::string>(),
                       "dense [2], softmax-cross-entropy; 642 parameters; initial values "));
  EXPECT_TRUE(contains(comparison.at("variants").at(0).at("update_flags").get<std::string>(),
                       "--weight-decay 0"));
  EXPECT_GT(comparison.at("train_samples").get<int>(), 0);
  const json machine = comparison.at("machines").at(0);
  for (const char* key : {"commit", "instruction_set", "onednn"}) {
    EXPECT_TRUE(machine.at(key).is_string()) << key;
  }
  EXPECT_TRUE(
      contains(read_text(dir_ / "report.html"), machine.at("instruction_set").get<std::string>()));
}

}  // namespace
}  // namespace syncopate::test
