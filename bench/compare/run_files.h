// The folder of a report: DIR/comparison.json says what is compared, DIR/runs/NAME.jsonl has the
// lines of a run that has come to its end, good or bad, and nothing of one that has not. The first
// of these lines says under which conditions: what was made under others is not taken for it.
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

// What the report is told beside the options.
struct ComparisonFacts {
  std::string command;  // that makes it
  Machine machine;      // on which it is made
  std::optional<Chance> chance{};
};

struct RunEnding {
  std::optional<std::string> failure{};  // why it has failed
  std::vector<std::string> notes{};      // for the reader of its numbers
  std::string begin{};                   // a first line of metrics that others may have replaced
};

class RunFiles {
 public:
  // Makes the folder, and holds it (DIR/.lock) as long as this lives. Throws FileError; UsageError
  // when another process holds it.
  explicit RunFiles(std::filesystem::path dir);

  // What the run leaves in the end; what train writes to meanwhile; and what its processes say.
  std::filesystem::path result(const RunSpec& run) const;
  std::filesystem::path lines(const RunSpec& run) const;
  std::filesystem::path log(const RunSpec& run) const;
  std::filesystem::path checkpoints(const RunSpec& run) const;  // gone when the run is over

  // Says what is compared, for whoever draws the report. Throws UsageError when the folder has runs
  // of this name that were made under other conditions, unless `options.replace`, which removes
  // them.
  void begin(const CompareOptions& options, const std::vector<RunSpec>& runs,
             const ComparisonFacts& facts) const;
  bool is_done(const RunSpec& run) const;     // it came to a good end
  bool has_failed(const RunSpec& run) const;  // and may be tried again
  // The run has ended: its lines get their place. One that left no summary has failed.
  void finish(const CompareOptions& options, const RunSpec& run, const RunEnding& ending) const;

 private:
  void check_conditions(const CompareOptions& options, const RunSpec& run) const;

  std::filesystem::path dir_;
  std::optional<FolderLock> lock_;
};

}  // namespace syncopate::bench
