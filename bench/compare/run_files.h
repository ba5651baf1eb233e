// The files in the folder of a report. DIR/comparison.json describes the comparison.
// DIR/runs/NAME.jsonl has the lines of a run that has ended, successfully or not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/comparison_file.h"
#include "bench/compare/data_facts.h"
#include "bench/compare/variant.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate::bench {

struct RunEnding {
  std::optional<std::string> failure{};      // why the run failed
  std::vector<std::string> notes{};          // remarks on the run for the report
  std::string begin{};                       // RealRunOutcome::begin
  std::optional<double> others_cpu_share{};  // RealRunOutcome::others_cpu_share
};

// Returns the file names and first lines of the planned runs, in the order of `runs`. data: what
// the lines say of the data and the network.
std::vector<RunHead> planned_heads(const CompareOptions& options, const std::vector<RunSpec>& runs,
                                   const std::optional<DataFacts>& data);

class RunFiles {
 public:
  // Makes the folder and locks it (DIR/.lock) for the lifetime of this object. Throws FileError.
  // Throws UsageError if another process has locked the folder, unless it shares the runs
  // (CompareOptions::shared_command).
  explicit RunFiles(std::filesystem::path dir, const std::string& shared_command = "");

  // Return the files of a run: all lines of a run that has ended, the metrics while it trains, the
  // output of its processes, the lock of the process that trains it (LockFile), and the
  // checkpoints, which are removed when the run ends.
  std::filesystem::path result(const RunSpec& run) const { return file(run, ".jsonl"); }
  std::filesystem::path lines(const RunSpec& run) const { return file(run, ".lines"); }
  std::filesystem::path log(const RunSpec& run) const { return file(run, ".log"); }
  std::filesystem::path lock(const RunSpec& run) const { return file(run, ".lock"); }
  std::filesystem::path checkpoints(const RunSpec& run) const { return file(run, ".checkpoints"); }

  // Writes comparison.json. If the folder has another comparison (conflict_in()), removes that
  // comparison if `replace`; otherwise throws UsageError and changes nothing. Processes that share
  // the runs call it one at a time (lock_report_files()).
  void begin(const std::vector<RunHead>& runs, const ComparisonFacts& facts, bool replace);
  bool is_done(const RunSpec& run) const { return is_run_done(result(run)); }  // without a failure
  bool has_failed(const RunSpec& run) const;  // the run failed and may be tried again
  // Writes the result of a run that has ended. A run without a summary counts as failed. begin()
  // must have been called with this run.
  void finish(const RunSpec& run, const RunEnding& ending) const;
  // Removes the metrics and checkpoints of a run. Does not remove result(run), which an earlier
  // attempt at the run may have written.
  void discard(const RunSpec& run) const;
  // Removes the locks of runs whose processes were killed.
  void remove_stale_locks() const;

 private:
  std::filesystem::path file(const RunSpec& run, const char* extension) const {
    return dir_ / "runs" / (run_name(run) + extension);
  }

  std::filesystem::path dir_;
  FolderLock lock_;
  std::vector<RunHead> heads_;  // first lines of the runs
  Machine machine_;
};

}  // namespace syncopate::bench
