// The folder of a report. DIR/comparison.json describes the comparison; DIR/runs/NAME.jsonl has the
// lines of a run that has ended, successfully or not. The first of these lines has the conditions
// of the run, and a run with other conditions is not reused.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/compare_options.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/variant.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate::bench {

// The parts of comparison.json that the options do not have.
struct ComparisonFacts {
  std::string command;  // command line of the comparison
  Machine machine;      // machine of this process
  std::optional<Chance> chance{};
};

struct RunEnding {
  std::optional<std::string> failure{};  // why the run failed
  std::vector<std::string> notes{};      // remarks on the run for the report
  std::string begin{};                   // first metrics line, which a restart may overwrite
};

class RunFiles {
 public:
  // Makes the folder and locks it (DIR/.lock) for the lifetime of this object. Throws FileError,
  // and UsageError if another process has locked it.
  explicit RunFiles(std::filesystem::path dir);

  std::filesystem::path result(const RunSpec& run) const;       // all lines of a run that has ended
  std::filesystem::path lines(const RunSpec& run) const;        // metrics while the run trains
  std::filesystem::path log(const RunSpec& run) const;          // output of the run's processes
  std::filesystem::path checkpoints(const RunSpec& run) const;  // removed when the run ends

  // Writes comparison.json. Throws UsageError if the folder has runs of the same name with other
  // conditions; with `options.replace` these are removed instead.
  void begin(const CompareOptions& options, const std::vector<RunSpec>& runs,
             const ComparisonFacts& facts) const;
  bool is_done(const RunSpec& run) const;     // the run ended successfully
  bool has_failed(const RunSpec& run) const;  // the run failed and may be tried again
  // Writes the result of a run that has ended. A run without a summary counts as failed.
  void finish(const CompareOptions& options, const RunSpec& run, const RunEnding& ending) const;

 private:
  void check_conditions(const CompareOptions& options, const RunSpec& run) const;

  std::filesystem::path dir_;
  std::optional<FolderLock> lock_;
};

}  // namespace syncopate::bench
