// Tests comparison.json: it is made again from the runs of a folder.
#include "bench/compare/comparison_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/bench/compare/run_files_case.h"
#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

class ComparisonFile : public RunFilesTest {};

// Returns comparison.json without what only the command knows.
nlohmann::json restorable(const fs::path& dir) {
  auto comparison = nlohmann::json::parse(content_of(dir / "comparison.json"));
  for (const char* key : {"command", "machines"}) comparison.erase(key);
  return comparison;
}

TEST_F(ComparisonFile, SaysAllOfTheComparisonWhenItIsRestored) {
  CompareOptions options = a_comparison();
  options.variants.push_back(parse_variant("central-storage", 4, 2));  // first by name
  options.target_accuracy = 0.8;
  const Planned planned(options);
  train_first(planned, 6, dir_);
  const auto before = restorable(dir_);
  fs::remove(dir_ / "comparison.json");
  std::ostringstream messages;
  restore_comparison_file(dir_, messages);
  EXPECT_EQ(restorable(dir_), before);
  EXPECT_EQ(messages.str(), "comparison.json was missing and was made from the 6 runs in " +
                                (dir_ / "runs").string() + "\n");
  EXPECT_EQ(read_comparison(dir_).target_accuracy, 0.8);
}

TEST_F(ComparisonFile, NamesTheMachinesOfRealRunsWhenItIsRestored) {
  const Planned planned(a_comparison());
  RunFiles files(dir_);
  for (std::size_t i = 0; i < 3; ++i) {
    planned.begin(files, i == 0 ? "a" : "b");
    train(files, planned.runs[i]);
    files.finish(planned.runs[i], {.others_cpu_share = 0.0});
  }
  fs::remove(dir_ / "comparison.json");
  std::ostringstream messages;
  restore_comparison_file(dir_, messages);
  const auto machines = read_comparison(dir_).machines;
  ASSERT_EQ(machines.size(), 2U);
  EXPECT_EQ(machines[0].host, "a");
  EXPECT_EQ(machines[1].host, "b");
  EXPECT_TRUE(contains(messages.str(), "; 1 run of these variants and seeds is missing\n"));
}

TEST_F(ComparisonFile, IsNotRestoredWithoutWhatARunIsOf) {
  RunFiles files(dir_);
  const auto error_of = [&](const std::string& fields) {
    std::ofstream(dir_ / "runs" / "async-seed1.jsonl")
        << R"({"event":"run","label":"async","seed":1,"workers":2,"servers":1,"clock":"virtual",)"
        << R"("variant":{})" << fields << "}";
    std::ostringstream messages;
    return message_of<FileError>([&] { restore_comparison_file(dir_, messages); });
  };
  EXPECT_TRUE(contains(error_of(""), "the first line has no \"comparison\"; remove the file"));
  EXPECT_TRUE(contains(error_of(R"(,"comparison":{})"), "the first line has no \"row\""));
}

TEST_F(ComparisonFile, IsNotRestoredFromTwoComparisons) {
  CompareOptions options = a_comparison();
  train_first(Planned(options), 1, dir_);
  options.variants = {parse_variant("one-device", 4, 2)};
  options.target_accuracy = 0.8;
  train_first(Planned(options), 1, dir_ / "other");
  fs::copy(dir_ / "other" / "runs" / "one-device-seed1.jsonl", dir_ / "runs");
  fs::remove(dir_ / "comparison.json");
  std::ostringstream messages;
  EXPECT_TRUE(contains(message_of<FileError>([&] { restore_comparison_file(dir_, messages); }),
                       "one-device-seed1.jsonl are of different comparisons: in the first, the "
                       "target accuracy is 0.95, not 0.8"));
  EXPECT_FALSE(fs::exists(dir_ / "comparison.json"));
}

TEST_F(ComparisonFile, NamesTheRunsThatItLeavesOut) {
  const Planned planned(a_comparison());
  train_first(planned, 4, dir_);
  const auto restored = [&] {
    std::ostringstream messages;
    restore_comparison_file(dir_, messages);
    return messages.str();
  };
  EXPECT_EQ(restored(), "");
  const fs::path runs = dir_ / "runs";
  fs::copy(runs / "mirrored-seed1.jsonl", runs / "async-seed1.jsonl");
  EXPECT_EQ(restored(), "1 run in " + runs.string() +
                            " is left out, because comparison.json does not name it, such as "
                            "async-seed1.jsonl; without comparison.json the report is made of all "
                            "runs\n");
}

}  // namespace
}  // namespace syncopate::bench
