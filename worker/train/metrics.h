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
#include "worker/train/confusion.h"
#include "worker/train/metric_value.h"

namespace syncopate {

// The line {"event":"begin"}, written when training begins in a process. Several processes may
// append to one file, and a process may be restarted, so later lines repeat `began_at` to name the
// clock of their seconds.
struct BeginMetrics {
  std::int64_t step = 0;     // updates applied before this process began
  std::int64_t samples = 0;  // samples trained before this process began
  // True: all replicas are synchronous; training pauses for evaluations and checkpoints, and
  // seconds leave them out.
  bool is_synchronous = true;
  double began_at = 0.0;       // wall clock, seconds since 1970 UTC
  std::string head = {};       // --head; empty: none
  std::string normalize = {};  // --normalize; empty: the data set's
};
// Returns the wall clock's time now, in seconds since 1970 UTC.
double wall_clock_seconds();

struct StepMetrics {
  std::int64_t step = 0;
  double epoch = 0.0;  // passes over the data so far, with fraction
  double loss = 0.0;
  MetricValue metric;  // of the samples since the last line
  double learning_rate = 0.0;
  std::int64_t samples = 0;
  double seconds = 0.0;  // training time since training began
  double samples_per_second = 0.0;
  double input_wait_fraction = 0.0;  // of the time since the last line
  // Seconds per step, means since the last line, on the first replica of this task. Exposed: the
  // replica waited for other replicas or added their gradients. Hidden: communication that ran
  // while the replica computed.
  double compute_seconds = 0.0;
  double communication_exposed_seconds = 0.0;
  double communication_hidden_seconds = 0.0;
  // The staleness of the pushes of all workers since training began; 0 for synchronous replicas.
  double staleness_mean = 0.0;
  std::int64_t staleness_max = 0;
  // The loss scale of the first replica of this task; nothing where losses are not scaled, and in
  // asynchronous jobs.
  std::optional<LossScaleState> loss_scale = {};
};

struct EvalMetrics {
  std::int64_t step = 0;
  double epoch = 0.0;
  double test_loss = 0.0;
  MetricValue test_metric = {};
  std::int64_t samples = 0;  // number of evaluated samples in the split
  double seconds = 0.0;      // duration of this evaluation
  // True: of the validation split; the line has "val_loss", and "val_accuracy" or its like.
  bool on_validation = false;
  // Samples trained before the evaluation, and the training time until it began. Synchronous
  // training pauses for evaluations and checkpoints, and their time is left out.
  std::int64_t trained_samples = 0;
  double trained_seconds = 0.0;
  // The began_at value of the process that measured trained_seconds; nothing: this process.
  std::optional<double> began_at = {};
  std::int64_t bad_samples = 0;           // samples of the split that are left out
  std::string first_bad = {};             // why the first of them could not be read
  std::vector<ClassCounts> classes = {};  // of the pixels of label maps; empty for other networks
  std::shared_ptr<const ConfusionMatrix> confusion = {};  // null: not counted; for TensorBoard
};

// The time of one worker over all its steps. Where waiting for other workers cannot be told from
// waiting for bytes, both are in communication_exposed_seconds.
struct WorkerMetrics {
  int worker = 0;
  std::int64_t steps = 0;  // number of steps that the worker took part in
  std::int64_t samples = 0;
  double seconds = 0.0;
  double compute_seconds = 0.0;
  double communication_exposed_seconds = 0.0;
  std::optional<double> peers_wait_seconds;
  double input_wait_seconds = 0.0;
  std::optional<std::int64_t> bytes_sent;
  std::optional<std::int64_t> bytes_received;
  // Steps that were skipped because fp16 gradients were not finite; nothing where they are not
  // counted.
  std::optional<std::int64_t> skipped_steps = {};
};

// Describes an evaluation for a log line, such as
// "step 9000, epoch 3.00: test accuracy 98.10%, test loss 0.0612 (1000 samples, 0.4 s)".
std::string describe(const EvalMetrics& metrics);

struct Summary {
  std::string strategy;
  std::string model;
  std::string data;
  std::string device;  // name of the device, Backend::description
  int replicas = 1;
  std::int64_t global_batch = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  // The time in training steps of this process, without evaluations, checkpoints and the processes
  // before --resume; steps and samples count from the beginning of the run. In an asynchronous job
  // the seconds from the first step to the end, because other workers train during an evaluation.
  double seconds = 0.0;
  double samples_per_second = 0.0;
  double train_loss = 0.0;
  MetricValue test_metric = {};  // NaN, as test_loss, if the run never evaluates
  double test_loss = 0.0;
  std::optional<MetricValue> val_metric = {};  // of the validation split, if there is one
  std::optional<double> val_loss = {};
  std::vector<ClassCounts> test_classes = {};  // of the pixels of label maps, in the test split
  std::vector<ClassCounts> val_classes = {};   // and in the validation split
  std::shared_ptr<const ConfusionMatrix> test_confusion = {};  // null: not counted
  std::int64_t train_bad_samples = 0;  // replaced by others, in the epoch that had the most
  std::int64_t test_bad_samples = 0;   // samples of the split that are left out
  std::int64_t val_bad_samples = 0;
  std::string first_bad = {};  // why the first of them, of the test split if it has one, is bad
  double staleness_mean = 0.0;
  std::int64_t staleness_max = 0;
  double input_wait_fraction = 0.0;  // of the task that waits longest; of one asynchronous worker
  double communication_exposed_fraction = 0.0;  // part of the time in steps
  // For each pipeline stage: the fraction of step time spent waiting for other stages.
  std::vector<double> stage_idle_fractions = {};
  std::int64_t peak_memory_bytes = 0;
  std::optional<DeviceLoad> gpu;           // of this task's GPUs, if the driver tells
  std::string weights_hash;                // FNV-1a of all values in memory order, hexadecimal
  std::vector<WorkerStaleness> staleness;  // one per worker; empty for synchronous replicas
  // Batches that a worker had pushed in part when it died. That part is in the values twice. 0 for
  // synchronous replicas.
  std::int64_t repeated_batches = 0;
};

// Writes metrics. One thread only. A numeric field that is not a number is written as null. A line
// that cannot be written is lost, and the first of such lines is logged.
class MetricsWriter {
 public:
  virtual ~MetricsWriter() = default;
  // False: no lines are written, and numbers that are costly need not be measured.
  virtual bool is_read() const noexcept { return true; }
  virtual void write(const BeginMetrics& metrics) = 0;
  virtual void write(const StepMetrics& metrics) = 0;
  virtual void write(const EvalMetrics& metrics) = 0;
  virtual void write(const WorkerMetrics& metrics) = 0;
  virtual void write(const Summary& summary) = 0;
};

// Makes a writer of metrics. An empty path gives a writer that writes nothing. `append` is for a
// resumed run. While the writer lives, another run that writes the file is refused. Each line is
// one write to the end of the file, so that several tasks of a run may share a file. Throws
// UsageError naming the file and the process of another run that writes it; FileError naming the
// file.
std::unique_ptr<MetricsWriter> make_metrics_writer(const std::filesystem::path& path, bool append);
// Makes a writer of metrics that appends, and opens the file at its first line. It is for the
// workers of an asynchronous job; one of them at a time reports. An empty path writes nothing. The
// first line throws FileError.
std::unique_ptr<MetricsWriter> make_late_metrics_writer(const std::filesystem::path& path);
// Makes a writer that passes everything on to both.
std::unique_ptr<MetricsWriter> make_both(std::unique_ptr<MetricsWriter> first,
                                         std::unique_ptr<MetricsWriter> second);

// Sums of losses, times and samples over a number of training steps.

struct StepTotals {
  double loss = 0.0;  // sum of the mean losses of the steps
  double seconds = 0.0;
  std::int64_t steps = 0;
  double metric = 0.0;  // sum of the main metric over the samples
  std::int64_t samples = 0;

  void add(const Scores& scores, double step_seconds) {
    loss += scores.loss;
    seconds += step_seconds;
    ++steps;
    metric += scores.metrics[kMainMetric];
    samples += scores.num_samples;
  }
  // The mean loss of a step; NaN when there was no step.
  double mean_loss() const {
    return steps > 0 ? loss / static_cast<double>(steps) : std::numeric_limits<double>::quiet_NaN();
  }
  // Returns the mean over the samples of the main metric of `of`, the loss of the network.
  MetricValue mean_metric(LossKind of) const {
    return {of, ratio(metric, static_cast<double>(samples))};
  }
  double samples_per_second() const { return ratio(static_cast<double>(samples), seconds); }

  // Returns part / whole, or 0 when `whole` is 0.
  static double ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }
};

// Returns the sum of the staleness histograms of all workers.
ps::StalenessHistogram merge_staleness(std::span<const WorkerStaleness> workers);

// Describes the staleness of all workers' pushes, such as
// "mean 2.98, max 11 over 2812 bucket pushes; by worker 2.97 2.99 3.01 2.95".
std::string describe_staleness(std::span<const WorkerStaleness> workers);

}  // namespace syncopate
