// A comparison whose runs "train" into a folder: for tests of the folder and of comparison.json.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare/run_files.h"
#include "bench/compare/run_plan.h"
#include "models/base/errors.h"
#include "tests/bench/compare/two_variants.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {

inline CompareOptions a_comparison() {
  CompareOptions options = two_variants();
  options.program = "/here/syncopate";
  options.target_accuracy = 0.95;
  return options;
}

inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A comparison with its runs in a folder.
struct Planned {
  explicit Planned(CompareOptions chosen)
      : options(std::move(chosen)),
        runs(plan_runs(options, 1000)),
        heads(planned_heads(options, runs, std::nullopt)) {}

  void begin(RunFiles& files, const std::string& host = "") const {
    files.begin(heads, {.command = "the command", .machine = {.host = host, .date = "today"}},
                options.replace);
  }
  // Returns why the folder refuses the comparison; "" if it does not.
  std::string refusal(const std::filesystem::path& dir) const {
    return message_if_thrown<UsageError>([&] {
      RunFiles files(dir);
      begin(files);
    });
  }

  CompareOptions options;
  std::vector<RunSpec> runs;
  std::vector<RunHead> heads;
};

// Leaves the files of a run that trained successfully, as train does.
inline void train(const RunFiles& files, const RunSpec& run) {
  std::ofstream(files.lines(run))
      << R"({"event":"summary","steps":2,"samples":64,"seconds":1.0,"samples_per_second":64,)"
      << R"("train_loss":0.4,"test_accuracy":0.9,"test_loss":0.5,"staleness_mean":0,)"
      << R"("staleness_max":0,"input_wait_fraction":0,"communication_exposed_fraction":0,)"
      << R"("weights_hash":"cafe","staleness":[]})"
      << "\n";
}

class RunFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(testing::TempDir()) / ("run-files-" + std::to_string(getpid()));
    std::filesystem::remove_all(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // Trains the first `count` runs of a comparison into a folder.
  static void train_first(const Planned& planned, std::size_t count,
                          const std::filesystem::path& dir, const std::string& host = "") {
    RunFiles files(dir);
    planned.begin(files, host);
    for (std::size_t i = 0; i < count; ++i) {
      train(files, planned.runs.at(i));
      files.finish(planned.runs.at(i), {});
    }
  }

  std::filesystem::path dir_;
};

}  // namespace syncopate::bench
