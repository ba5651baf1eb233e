// What came of one run, read from the JSON lines it wrote (worker/train/metrics.h): all that
// tables, verdict and report are made of. A real run and one under the virtual clock write the same
// lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::bench {

// A measurement on the test samples.
struct CurvePoint {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // trained before it
  double seconds = 0.0;      // of the job before it: evaluations in which it stood still excepted
  double loss = 0.0;
  double accuracy = 0.0;
  double stood_still_seconds = 0.0;  // before it, for other evaluations: not in `seconds`
};

// A stretch of training, as a step line has it.
struct TrainingPoint {
  std::int64_t step = 0;
  std::int64_t samples = 0;
  double seconds = 0.0;
  double loss = 0.0;
  double samples_per_second = 0.0;
  std::optional<double> learning_rate{};
};

// Where one worker's time went.
struct WorkerTimes {
  int worker = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  double seconds = 0.0;  // all of it
  double compute_seconds = 0.0;
  double communication_seconds = 0.0;  // exposed: it stood and waited for bytes
  // It waited for other workers; nothing: nobody could tell, and it is in communication_seconds.
  std::optional<double> peers_seconds;
  double input_seconds = 0.0;
  std::optional<std::int64_t> bytes_sent;  // nothing: not counted
  std::optional<std::int64_t> bytes_received;
};

struct WorkerStalenessCounts {
  int worker = 0;
  double mean = 0.0;
  std::int64_t max = 0;
  std::vector<std::int64_t> counts;  // counts[t]: gradients of staleness t
};

struct RunResult {
  std::string label;  // of its variant
  std::uint64_t seed = 1;
  int workers = 1;
  std::optional<std::string> failure;  // a line that says why it has no summary
  std::vector<std::string> notes;      // what a reader of its numbers should know
  std::vector<std::string> trouble;    // on purpose: flags of compare and their values, in turn
  std::vector<TrainingPoint> training;
  std::vector<CurvePoint> curve;  // ascending
  std::vector<WorkerTimes> times;
  std::vector<WorkerStalenessCounts> staleness;
  // Of its summary.
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
  // Predicted from the link's latency and bandwidth, a step's: none where nothing was predicted.
  std::optional<double> predicted_communication_seconds;
  std::string weights_hash;
};

// Lines, one object each:
//   {"event":"run","label":L,"seed":S,"workers":N,...}        first; "trouble": list of words
//   {"event":"begin",...} {"event":"step",...} {"event":"eval",...}  as train writes them
//   {"event":"worker","worker":W,...}                          one per worker, at its end
//   {"event":"note","text":T}
//   {"event":"summary",...}  or  {"event":"failure","reason":R}
// Seconds of training points, curve and summary become those of the job (job_clock.h). A run whose
// evaluations go back in time has failed.
// Unknown events and fields are passed over; a last line that was cut short as well. A file without
// summary or failure is a run that was interrupted: nothing. Throws FileError naming file and line
// for what is no JSON or lacks a field.
std::optional<RunResult> read_run(const std::filesystem::path& file);

}  // namespace syncopate::bench
