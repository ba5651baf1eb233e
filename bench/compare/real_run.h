// Trains one run in processes on this machine: with `syncopate train`, or `syncopate launch` for
// several tasks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/variant.h"
#include "bench/harness/fault_injection.h"
#include "worker/train/progress.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

struct RealRunOptions {
  std::filesystem::path program;   // path of the program syncopate
  std::string progress_name;       // beginning of the progress line, "[4/21] mirrored, seed 1"
  std::filesystem::path metrics;   // the file for the metrics of train
  std::filesystem::path log;       // the file for the output of the processes
  std::int64_t total_updates = 0;  // for the progress line
  double max_seconds = 0.0;        // if not 0, the run ends after this time instead
  // The workers to kill. A variant with a single process is killed as a whole. Either all kills
  // have the same restart_seconds, or none has restart_seconds. Times count from the beginning of
  // training. A job that wrote its summary has not failed, even if workers were killed without a
  // restart.
  std::vector<Kill> kills;
  std::vector<Join> joins;  // workers that join late; launch refuses them for some strategies
  std::filesystem::path checkpoints;  // the folder from which killed tasks resume
};

// Returns the command line that trains the run.
std::vector<std::string> command_of(const RunSpec& run, const RealRunOptions& options);

enum class RunEnd : std::uint8_t { kDone, kFailed, kStopped };
struct RealRunOutcome {
  RunEnd end = RunEnd::kDone;
  std::string reason{};              // for kFailed: the last line of the first process that failed
  std::vector<std::string> notes{};  // about kills that did not take place
  // The first line of the metrics as the job first wrote it. A job that restarts without a
  // checkpoint overwrites this line in the file, so the line is kept here if workers were killed;
  // otherwise empty.
  std::string begin{};
  // The share of the machine's CPU time that other processes took while the processes of the run
  // existed. Empty if the run was not started.
  std::optional<double> others_cpu_share{};
};

// Runs the processes of a run to their end, and passes signals from `signals` on to them. Throws
// FileError if the processes cannot be started. Forks, so no other thread may exist.
RealRunOutcome run_really(const RunSpec& run, const RealRunOptions& options, StopSignal& signals,
                          ProgressDisplay& display);

}  // namespace syncopate::bench
