// A comparison from its first run to its report.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "bench/compare/compare_options.h"
#include "bench/compare/report/comparison.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

// Runs what is missing in options.report, one after the other (under the virtual clock several at
// once), and draws the report of what is there. A run that fails is a row that says so. Throws
// UsageError, FileError; std::runtime_error when every run has failed, or when a signal ended it:
// the same command goes on with what is missing.
void compare(const CompareOptions& options, const std::string& command, StopSignal& signals,
             std::ostream& out);

// The table and the verdict to `out`, the report's files into the folder, and last the page's path.
// Throws FileError.
void tell(const std::filesystem::path& dir, const Comparison& comparison, std::ostream& out);

// Computes again what `train --record record` wrote down, on options.data, and says what came out.
// Throws UsageError when there is no such record, and what replay_order (virtual/replay.h) throws.
void replay(const std::filesystem::path& record, const CompareOptions& options, std::ostream& out);

}  // namespace syncopate::bench
