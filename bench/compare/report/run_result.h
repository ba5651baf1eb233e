// The result of one run, read from the JSON lines that it wrote through a MetricsWriter. Tables,
// verdict and report are made from it. Only the fields that they need are read. All seconds count
// from the beginning of the job's training. Real runs and runs under the virtual clock write the
// same lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "worker/train/metrics.h"

namespace syncopate::bench {

// An evaluation on the test samples.
struct CurvePoint {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // samples trained before the evaluation
  double seconds = 0.0;      // job's seconds until it, without evaluations that paused training
  double loss = 0.0;
  double accuracy = 0.0;
  double paused_seconds = 0.0;  // time of earlier evaluations that paused training
};

// The largest share of the CPU time that other processes may take during a run. Above it the
// machine was busy, and the run's times are not evidence. Quiet machines of 2 CPUs have 0.00 to
// 0.03.
inline constexpr double kMostOthersCpuShare = 0.10;

struct RunResult {
  std::string label;  // the name of its variant
  std::uint64_t seed = 1;
  int workers = 1;
  std::optional<std::string> failure;  // one line: why the run has no summary
  std::optional<double> began_at;      // wall clock, in seconds; empty under the virtual clock
  int warmup_updates = 0;              // while the learning rate rises; 0 if unknown
  std::vector<std::string> notes;      // what a reader of the run's numbers should know
  std::vector<std::string> faults;     // injected faults: flags of compare with their values
  std::vector<StepMetrics> training;   // the step lines; learning_rate may be NaN
  std::vector<CurvePoint> curve;       // the evaluations, ascending
  std::vector<WorkerMetrics> times;
  Summary summary;
  // Communication seconds per step, predicted from latency and bandwidth of the link; may be empty.
  std::optional<double> predicted_communication_seconds;
  // The share, from 0 to 1, of the machine's CPU time that other processes took during the run.
  // Empty under the virtual clock and if unknown.
  std::optional<double> others_cpu_share;

  // Whether other processes took more than kMostOthersCpuShare, so that times claim nothing.
  bool is_disturbed() const noexcept {
    return others_cpu_share.value_or(0.0) > kMostOthersCpuShare;
  }
};

// Reads a file of JSON lines, one object each:
//   {"event":"run","label":L,"seed":S,"workers":N,...}        the first; "trouble": list of faults
//   {"event":"begin",...} {"event":"step",...} {"event":"eval",...}  as train writes them
//   {"event":"worker","worker":W,...}                          one per worker, at its end
//   {"event":"machine","others_cpu_share":S,...}               real runs: where the run was made
//   {"event":"note","text":T}
//   {"event":"summary",...}  or  {"event":"failure","reason":R}
// Seconds of training points, curve and summary are converted to seconds of the job (job_clock.h).
// A run counts as failed if its evaluations go back in time. Unknown events and fields are ignored,
// as is a last line that was cut short. Returns nothing for a run without summary or failure, which
// was interrupted. Throws FileError naming file and line if a line is not JSON or lacks a field.
std::optional<RunResult> read_run(const std::filesystem::path& file);

}  // namespace syncopate::bench
