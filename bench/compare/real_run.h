// One run as processes on this machine: `syncopate train`, or `syncopate launch` where it has
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
  std::filesystem::path program;   // syncopate
  std::filesystem::path metrics;   // where train writes its lines
  std::filesystem::path log;       // what it says, for people
  std::int64_t total_updates = 0;  // for the display
  double max_seconds = 0.0;        // not 0: decides instead
  // Workers of variants with several tasks; of one that is a single process, that process. All
  // have the same restart_seconds, or none has any. Their time counts from when training began; a
  // worker that was killed for good is no failure of a job that came to its end.
  std::vector<Kill> kills;
  std::vector<Join> joins;            // launch says which variants cannot have any
  std::filesystem::path checkpoints;  // folder from which killed tasks go on
};

// The command line that trains it.
std::vector<std::string> command_of(const RunSpec& run, const RealRunOptions& options);

enum class RunEnd : std::uint8_t { kDone, kFailed, kStopped };
struct RealRunOutcome {
  RunEnd end = RunEnd::kDone;
  std::string reason{};              // kFailed: the word of who failed first
  std::vector<std::string> notes{};  // kills that never took place
  // The first line of metrics, where somebody was to be killed: a job that begins anew without a
  // checkpoint writes others over it.
  std::string begin{};
};

// Runs it to its end, or until `signals` has something, which is passed on to it. Throws FileError
// when it cannot be started. Forks: the only thread of the process calls it.
RealRunOutcome run_really(const RunSpec& run, const RealRunOptions& options, StopSignal& signals,
                          ProgressDisplay& display);

}  // namespace syncopate::bench
