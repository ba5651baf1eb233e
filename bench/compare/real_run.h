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
  std::string progress_name;       // begins the progress line: "[4/21] mirrored, seed 1"
  std::filesystem::path metrics;   // the file for the metrics of train
  std::filesystem::path log;       // the file for the output of the processes
  std::int64_t total_updates = 0;  // for the progress line
  double max_seconds = 0.0;        // if not 0, the run ends by time instead
  // The workers to kill; a variant that is a single process is killed as a whole. Either all have
  // the same restart_seconds or none has any. Times count from the beginning of training. A job has
  // not failed if it wrote its summary, even if workers were killed for good.
  std::vector<Kill> kills;
  std::vector<Join> joins;            // launch refuses joins for variants without late workers
  std::filesystem::path checkpoints;  // the folder from which killed tasks resume
};

// Returns the command line that trains the run.
std::vector<std::string> command_of(const RunSpec& run, const RealRunOptions& options);

enum class RunEnd : std::uint8_t { kDone, kFailed, kStopped };
struct RealRunOutcome {
  RunEnd end = RunEnd::kDone;
  std::string reason{};              // kFailed: the last line of the first process that failed
  std::vector<std::string> notes{};  // kills that never took place
  // The first line of the metrics if there were kills: a job that restarts without a checkpoint
  // overwrites it.
  std::string begin{};
  // The share of the machine's CPU time that other processes took, from the start of the run's
  // processes to their end. Empty for a run that was not started.
  std::optional<double> others_cpu_share{};
};

// Runs the processes of a run to their end. A signal from `signals` is passed on to them. Throws
// FileError if they cannot be started. Forks, so no other thread may run.
RealRunOutcome run_really(const RunSpec& run, const RealRunOptions& options, StopSignal& signals,
                          ProgressDisplay& display);

}  // namespace syncopate::bench
