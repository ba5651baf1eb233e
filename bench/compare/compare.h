// Runs a comparison, from its first run to its report.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "bench/compare/compare_options.h"
#include "bench/compare/report/comparison.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

// Trains those runs of a comparison that its report folder does not have yet, and writes the
// report. Real runs are trained one after the other; under the virtual clock, several are trained
// at once. A failed run is noted in the report and does not end the comparison. If the machine is
// quiet at the end, real runs during which other processes took much CPU time are trained once
// more. Throws UsageError, FileError. Throws std::runtime_error if every run failed or a signal
// stopped the comparison. The same command, given again, trains only the missing and the failed
// runs; with options.shared_command, only the missing ones, together with other processes. command:
// the command line of the comparison, for comparison.json.
void compare(const CompareOptions& options, const std::string& command, StopSignal& signals,
             std::ostream& out);

// Computes again, bit for bit, the job that `train --record record` recorded on options.data, and
// prints the result. Throws UsageError if there is no such record. Also throws what replay_order()
// (virtual_clock/replay.h) throws.
void replay(const std::filesystem::path& record, const CompareOptions& options, std::ostream& out);

}  // namespace syncopate::bench
