// The result of one run, read from the JSON lines it wrote (worker/train/metrics.h). Tables,
// verdict and report are made from it. Real runs and runs under the virtual clock write the same
// lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::bench {

// An evaluation on the test samples.
struct CurvePoint {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // trained before it
  double seconds = 0.0;      // of the job before it, without evaluations that paused training
  double loss = 0.0;
  double accuracy = 0.0;
  double paused_seconds = 0.0;  // of earlier evaluations that paused training, not in `seconds`
};

// A step line: the training since the previous one.
struct TrainingPoint {
  std::int64_t step = 0;
  std::int64_t samples = 0;
  double seconds = 0.0;
  double loss = 0.0;
  double samples_per_second = 0.0;
  std::optional<double> learning_rate{};
};

// The parts of one worker's time.
struct WorkerTimes {
  int worker = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double seconds = 0.0;  // the whole time
  double compute_seconds = 0.0;
  double communication_seconds = 0.0;  // exposed: the worker waited for communication
  // Wait time for other workers; empty if it is part of communication_seconds.
  std::optional<double> peers_seconds;
  double input_seconds = 0.0;
  std::optional<std::int64_t> bytes_sent;  // empty if bytes were not counted
  std::optional<std::int64_t> bytes_received;
};

struct WorkerStalenessCounts {
  int worker = 0;
  double mean = 0.0;
  std::int64_t max = 0;
  std::vector<std::int64_t> counts;  // counts[t]: number of gradients of staleness t
};

struct RunResult {
  std::string label;  // that of its variant
  std::uint64_t seed = 1;
  int workers = 1;
  std::optional<std::string> failure;  // one line that says why it has no summary
  std::vector<std::string> notes;      // what a reader of its numbers should know
  std::vector<std::string> faults;     // injected: flags of compare, each followed by its value
  std::vector<TrainingPoint> training;
  std::vector<CurvePoint> curve;  // ascending
  std::vector<WorkerTimes> times;
  std::vector<WorkerStalenessCounts> staleness;
  // The numbers of its summary.
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double seconds = 0.0;
  double samples_per_second = 0.0;
  double train_loss = 0.0;
  double test_accuracy = 0.0;
  double test_loss = 0.0;
  double staleness_mean = 0.0;
  std::int64_t staleness_max = 0;
  double input_wait_fraction = 0.0;
  double communication_exposed_fraction = 0.0;
  // Per step, predicted from the link's latency and bandwidth; empty if there was no prediction.
  std::optional<double> predicted_communication_seconds;
  std::string weights_hash;
};

// Reads a file of JSON lines, one object each:
//   {"event":"run","label":L,"seed":S,"workers":N,...}        the first; "trouble": list of faults
//   {"event":"begin",...} {"event":"step",...} {"event":"eval",...}  as train writes them
//   {"event":"worker","worker":W,...}                          one per worker, at its end
//   {"event":"note","text":T}
//   {"event":"summary",...}  or  {"event":"failure","reason":R}
// Seconds of training points, curve and summary are converted to those of the job (job_clock.h). A
// run whose evaluations go back in time counts as failed. Unknown events and fields are ignored, as
// is a last line that was cut short. Returns nothing for a run without summary or failure, which
// was interrupted. Throws FileError naming file and line if a line is not JSON or lacks a field.
std::optional<RunResult> read_run(const std::filesystem::path& file);

}  // namespace syncopate::bench
