// Metrics as JSON lines: first {"event":"begin",...}, then {"event":"step",...},
// {"event":"eval",...}, {"event":"worker",...} and last {"event":"summary",...}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/device_load.h"
#include "models/backend/model.h"
#include "strategies/asynchronous_job.h"

namespace syncopate {

// Training begins in this process, which may be one of several that write to the file, or have been
// started again. Lines that follow from it say `began_at` too: whose seconds theirs are.
struct BeginMetrics {
  std::int64_t step = 0;     // done before, ditto
  std::int64_t samples = 0;  // trained
  // Training stands still for evaluations and checkpoints, and seconds leave them out.
  bool in_step = true;
  double began_at = 0.0;  // by the wall clock: seconds since 1970, UTC
};
// As of now.
double wall_clock_seconds();

struct StepMetrics {
  std::int64_t step = 0;
  double epoch = 0.0;  // passes over the data so far, with fraction
  double loss = 0.0;
  double accuracy = 0.0;  // of the samples since the last line
  double learning_rate = 0.0;
  std::int64_t samples = 0;
  double seconds = 0.0;  // since training began
  double samples_per_second = 0.0;
  double input_wait_fraction = 0.0;  // of the time since the last line
  // Of a step, mean since the last line, on this task's first replica. Exposed: it stood and
  // waited, or added up, for other replicas. Hidden: all-reduces were under way while it computed.
  double compute_seconds = 0.0;
  double communication_exposed_seconds = 0.0;
  double communication_hidden_seconds = 0.0;
  // Of all workers' pushes since training began; 0 where replicas keep step.
  double staleness_mean = 0.0;
  std::int64_t staleness_max = 0;
  // Of this task's first replica; none where losses are not scaled, or replicas keep no step.
  std::optional<LossScaleState> loss_scale = {};
};

struct EvalMetrics {
  std::int64_t step = 0;
  double epoch = 0.0;
  double test_loss = 0.0;
  double test_accuracy = 0.0;
  std::int64_t samples = 0;  // that it was measured on
  double seconds = 0.0;      // that took
  // Trained before it, and the training time until then: evaluations and checkpoints excluded where
  // training stands still for them.
  std::int64_t trained_samples = 0;
  double trained_seconds = 0.0;
  // When the process began to train whose seconds those are; none: the one that writes.
  std::optional<double> began_at = {};
};

// Where the time of one worker went, over all its steps. Where nobody can tell waiting for other
// workers from waiting for bytes, both are in communication_exposed_seconds.
struct WorkerMetrics {
  int worker = 0;
  std::int64_t steps = 0;  // that it took part in
  std::int64_t samples = 0;
  double seconds = 0.0;
  double compute_seconds = 0.0;
  double communication_exposed_seconds = 0.0;
  std::optional<double> peers_wait_seconds;
  double input_wait_seconds = 0.0;
  std::optional<std::int64_t> bytes_sent;
  std::optional<std::int64_t> bytes_received;
  // Whose gradients were not finite in fp16, so that their samples are missing; none: not counted.
  std::optional<std::int64_t> skipped_steps = {};
};

// "step 9000, epoch 3.00: test accuracy 98.10%, test loss 0.0612 (1000 samples, 0.4 s)"
std::string describe(const EvalMetrics& metrics);

struct Summary {
  std::string strategy;
  std::string model;
  std::string data;
  std::string device;  // Backend::description
  int replicas = 1;    // that trained
  std::int64_t global_batch = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  // In training steps of this process: evaluation, checkpoints and, after --resume, earlier
  // processes excluded, while steps and samples count from the run's beginning. Where replicas do
  // not keep step: from the first step to the end, since others trained during an evaluation.
  double seconds = 0.0;
  double samples_per_second = 0.0;
  double train_loss = 0.0;
  double test_accuracy = 0.0;
  double test_loss = 0.0;
  double staleness_mean = 0.0;
  std::int64_t staleness_max = 0;
  double input_wait_fraction = 0.0;
  double communication_exposed_fraction = 0.0;  // of the time in steps
  std::int64_t peak_memory_bytes = 0;
  std::optional<DeviceLoad> gpu;           // of this task's GPUs, where the driver says
  std::string weights_hash;                // FNV-1a of all values in memory order, hexadecimal
  std::vector<WorkerStaleness> staleness;  // by worker; empty where replicas keep step
};

// One thread only. A numeric field that is not a number is written as null.
class MetricsWriter {
 public:
  virtual ~MetricsWriter() = default;
  // False: nobody reads what is written, and it need not be measured.
  virtual bool is_read() const noexcept { return true; }
  virtual void write(const BeginMetrics& metrics) = 0;
  virtual void write(const StepMetrics& metrics) = 0;
  virtual void write(const EvalMetrics& metrics) = 0;
  virtual void write(const WorkerMetrics& metrics) = 0;
  virtual void write(const Summary& summary) = 0;
};

// An empty path writes nothing. `append` for a resumed run. Throws FileError naming the file.
// A line is one write to the end of the file, so that several processes may write to one file.
std::unique_ptr<MetricsWriter> make_metrics_writer(const std::filesystem::path& path, bool append);
// Appends, and opens the file only when there is something to write: for one of many workers that
// may have to speak for all. An empty path writes nothing; FileError comes with the first line.
std::unique_ptr<MetricsWriter> make_late_metrics_writer(const std::filesystem::path& path);

// Sums over steps: since some line of metrics, since an epoch began.

struct StepTotals {
  double loss = 0.0;  // of the steps' mean losses
  double seconds = 0.0;
  std::int64_t steps = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;

  void add(const Scores& scores, double step_seconds) {
    loss += scores.loss;
    seconds += step_seconds;
    ++steps;
    correct += scores.num_correct;
    samples += scores.num_samples;
  }
  // NaN of nothing.
  double mean_loss() const {
    return steps > 0 ? loss / static_cast<double>(steps) : std::numeric_limits<double>::quiet_NaN();
  }
  double accuracy() const {
    return ratio(static_cast<double>(correct), static_cast<double>(samples));
  }
  double samples_per_second() const { return ratio(static_cast<double>(samples), seconds); }

  // 0 of nothing.
  static double ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }
};

// How stale gradients were, over workers and as people read it.

// Of all workers together.
ps::StalenessHistogram merge_staleness(std::span<const WorkerStaleness> workers);

// "mean 2.98, max 11 over 2812 bucket pushes; by worker 2.97 2.99 3.01 2.95"
std::string describe_staleness(std::span<const WorkerStaleness> workers);

}  // namespace syncopate
