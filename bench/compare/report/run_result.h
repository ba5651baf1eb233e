// The result of one run, read from the JSON lines that the run wrote through a MetricsWriter.
// Tables, verdict and report are made from RunResults; only the fields that they need are read. All
// seconds count from the beginning of the job's training. Real runs and runs under the virtual
// clock write the same lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "worker/train/metrics.h"

namespace syncopate::bench {

// An evaluation on the split that is evaluated during training (Comparison::watched_split()).
struct CurvePoint {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // samples trained before the evaluation
  // The job's time until the evaluation, without evaluations that paused training.
  double seconds = 0.0;
  double loss = 0.0;
  double accuracy = 0.0;
  double paused_seconds = 0.0;  // total time of earlier evaluations that paused training
};

// The largest share of the CPU time that other processes may take during a run. Above this share,
// the machine counts as busy, and claims do not use the times of the run. Quiet machines with 2
// CPUs have shares from 0.00 to 0.03.
inline constexpr double kMostOthersCpuShare = 0.10;

struct RunResult {
  std::string label;  // the label of the variant
  std::uint64_t seed = 1;
  int workers = 1;
  std::optional<std::string> failure;  // why the run has no summary, in one line
  // When the run began, by the wall clock, in seconds since 1970; nullopt under the virtual clock.
  std::optional<double> began_at;
  int warmup_updates = 0;  // number of updates in which the learning rate rises; 0 if unknown
  std::vector<std::string> notes;     // remarks for a reader of the run's numbers
  std::vector<std::string> faults;    // the injected faults, as flags of compare with their values
  std::vector<StepMetrics> training;  // the lines of steps; learning_rate may be NaN
  std::vector<CurvePoint> curve;      // the evaluations, in order
  std::vector<WorkerMetrics> times;
  Summary summary;
  // The communication time of a step in seconds, predicted from latency and bandwidth of the link;
  // nullopt if unknown.
  std::optional<double> predicted_communication_seconds;
  // The share, from 0 to 1, of the machine's CPU time that other processes took during the run.
  // Nullopt under the virtual clock, or if unknown.
  std::optional<double> others_cpu_share;

  // Returns whether other processes took more than kMostOthersCpuShare, so that claims do not use
  // the times of the run.
  bool is_disturbed() const noexcept {
    return others_cpu_share.value_or(0.0) > kMostOthersCpuShare;
  }
};

// Reads a file of JSON lines, one object each:
//   {"event":"run","label":L,"seed":S,"workers":N,...}        the first; "trouble": list of faults
//   {"event":"begin",...} {"event":"step",...} {"event":"eval",...}  as train writes them
//   {"event":"worker","worker":W,...}                          one per worker, at its end
//   {"event":"machine","others_cpu_share":S,...}               real runs: the machine of the run
//   {"event":"note","text":T}
//   {"event":"summary",...}  or  {"event":"failure","reason":R}
// Seconds of training points, curve and summary are converted to seconds of the job (job_clock.h).
// A run counts as failed if an evaluation has an earlier time than the evaluation before it.
// Unknown events and fields are ignored, as is a last line that was cut short. Returns nullopt for
// a run without summary or failure, which means that the run was interrupted. Throws FileError
// naming file and line if a line is not JSON or lacks a field.
std::optional<RunResult> read_run(const std::filesystem::path& file);

}  // namespace syncopate::bench
