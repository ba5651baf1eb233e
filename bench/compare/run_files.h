// The folder of a report: DIR/comparison.json says what is compared, DIR/runs/NAME.jsonl has the
// lines of a run that has come to its end, good or bad, and nothing of one that has not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/compare_options.h"
#include "bench/compare/variant.h"

namespace syncopate::bench {

class RunFiles {
 public:
  // Makes the folder. Throws FileError.
  explicit RunFiles(std::filesystem::path dir);

  // What the run leaves in the end; what train writes to meanwhile; and what its processes say.
  std::filesystem::path result(const RunSpec& run) const;
  std::filesystem::path lines(const RunSpec& run) const;
  std::filesystem::path log(const RunSpec& run) const;
  std::filesystem::path checkpoints(const RunSpec& run) const;  // gone when the run is over

  // Says what is compared, for whoever draws the report. Throws UsageError when the folder has runs
  // of this name with other flags, unless `options.replace`, which removes them.
  void begin(const CompareOptions& options, const std::vector<RunSpec>& runs,
             const std::string& command) const;
  bool is_done(const RunSpec& run) const;
  // The run has ended: its lines get their place, and `failure`, if there is one, stands in them.
  void finish(const RunSpec& run, const std::optional<std::string>& failure) const;

 private:
  void check_flags(const RunSpec& run, bool replace) const;

  std::filesystem::path dir_;
};

}  // namespace syncopate::bench
