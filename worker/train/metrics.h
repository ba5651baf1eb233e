// Writes metrics as JSON lines. The first line is {"event":"begin",...}, the last line
// {"event":"summary",...}. Between them are {"event":"step",...}, {"event":"eval",...} and
// {"event":"worker",...}.
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
#include "ps/shard/stale_gradients.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy_options.h"
#include "worker/train/metric_value.h"

namespace syncopate {

// The line {"event":"begin"}, written when training begins in a process. Several processes may
// append to one file, and a process may be restarted. The later lines of a process therefore repeat
// `began_at`, the time from which the seconds in these lines count.
struct BeginMetrics {
  std::int64_t step = 0;     // updates applied before this process began
  std::int64_t samples = 0;  // samples trained before this process began
  // True: all replicas are synchronous, so training pauses for evaluations and checkpoints. The
  // field `seconds` in all lines of the file then excludes these pauses.
  bool is_synchronous = true;
  double began_at = 0.0;       // wall clock, seconds since 1970 UTC
  std::string head = {};       // the value of --head; empty: no head
  std::string normalize = {};  // the value of --normalize; empty: the data set's normalization
  // The settings of local updates; nullopt for a strategy without rounds.
  std::optional<LocalUpdateOptions> local_updates = {};
};
// Returns the wall-clock time in seconds since 1970 UTC.
double wall_clock_seconds();

struct StepMetrics {
  std::int64_t step = 0;
  double epoch = 0.0;  // number of passes over the data so far, with a fraction
  double loss = 0.0;
  MetricValue metric;  // mean over the samples since the last line
  double learning_rate = 0.0;
  std::int64_t samples = 0;
  double seconds = 0.0;  // training time since training began
  double samples_per_second = 0.0;
  double input_wait_fraction = 0.0;  // time waiting for input / all time, since the last line
  // Seconds per step on the first replica of this task, as means over the steps since the last
  // line. "Exposed" is time in which the replica waited for other replicas or added their
  // gradients. "Hidden" is communication time in which the replica computed.
  double compute_seconds = 0.0;
  double communication_exposed_seconds = 0.0;
  double communication_hidden_seconds = 0.0;
  // The staleness of the pushes of all workers since training began; 0 for synchronous replicas.
  double staleness_mean = 0.0;
  std::int64_t staleness_max = 0;
  // The loss scale of the first replica of this task; nullopt if losses are not scaled, and in
  // asynchronous jobs.
  std::optional<LossScaleState> loss_scale = {};
  // Number of rounds of local updates so far, and the number of steps in the last one; nullopt
  // before the first round.
  struct Round {
    std::int64_t number = 0;
    std::int64_t inner_steps = 0;
  };
  std::optional<Round> round = {};
};

struct EvalMetrics {
  std::int64_t step = 0;
  double epoch = 0.0;
  Evaluation result = {};
  // True: the evaluation is of the validation split. The names of loss and metric in the line then
  // begin with "val_", such as "val_loss" and "val_accuracy".
  bool on_validation = false;
  // Samples trained before the evaluation began, and the training time until then. For synchronous
  // training this time excludes evaluations and checkpoints, because training pauses for them.
  std::int64_t trained_samples = 0;
  double trained_seconds = 0.0;
  // BeginMetrics::began_at of the process that measured trained_seconds; nullopt if it is this
  // process.
  std::optional<double> began_at = {};
};

// The times of one worker, summed over all its steps. If the strategy cannot distinguish waiting
// for other workers from waiting for bytes, communication_exposed_seconds has both and
// peers_wait_seconds is nullopt.
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
  // Steps that were skipped because fp16 gradients were not finite; nullopt if losses are not
  // scaled, and for synchronous workers.
  std::optional<std::int64_t> skipped_steps = {};
  // Steps with gradients that came too late; nullopt if the job drops no gradients.
  std::optional<ps::DroppedSteps> dropped_steps = {};
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
  // The time that this process spent in training steps, without evaluations and checkpoints. In an
  // asynchronous job, the time from the first step to the end, because other workers train during
  // an evaluation. Steps and samples, in contrast, also include earlier processes of a resumed run.
  double seconds = 0.0;
  double samples_per_second = 0.0;
  double train_loss = 0.0;
  Evaluation test = {};                       // loss and metric are NaN if the run never evaluates
  std::optional<Evaluation> validation = {};  // nullopt if there is no validation split
  // The number of training samples that were replaced because they were bad, in the epoch that had
  // the most such samples.
  std::int64_t train_bad_samples = 0;
  double staleness_mean = 0.0;
  std::int64_t staleness_max = 0;
  // The fraction of time spent waiting for input, of the task that waits longest; in an
  // asynchronous job, of one worker.
  double input_wait_fraction = 0.0;
  double communication_exposed_fraction = 0.0;  // exposed communication / time in steps
  // For each pipeline stage: the fraction of step time spent waiting for other stages.
  std::vector<double> stage_idle_fractions = {};
  std::int64_t peak_memory_bytes = 0;
  std::optional<DeviceLoad> gpu;           // load of this task's GPUs, if the driver reports it
  std::string weights_hash;                // FNV-1a of all values in memory order, hexadecimal
  std::vector<WorkerStaleness> staleness;  // one per worker; empty for synchronous replicas
  // The number of batches that a worker had pushed only in part when it died. Another worker
  // trained each of these batches again, so the values contain the pushed part twice. 0 for
  // synchronous replicas.
  std::int64_t repeated_batches = 0;
  // Bytes that all tasks have sent per trained sample, in this process; nullopt if the collective
  // does not count bytes.
  std::optional<double> bytes_per_sample = {};
  // Rounds of local updates. The number includes earlier processes of a resumed run. The seconds
  // count for the first replica of this task in this process, without waiting for other replicas.
  struct Rounds {
    std::int64_t number = 0;
    double exchange_seconds = 0.0;
  };
  std::optional<Rounds> rounds = {};  // nullopt for a strategy without rounds
};

// Writes metrics. One thread only. A NaN is written as null. A line that cannot be written is lost;
// a warning is logged for the first lost line.
class MetricsWriter {
 public:
  virtual ~MetricsWriter() = default;
  // False: the writer writes nothing, so the caller need not measure numbers that are costly.
  virtual bool is_read() const noexcept { return true; }
  virtual void write(const BeginMetrics& metrics) = 0;
  virtual void write(const StepMetrics& metrics) = 0;
  virtual void write(const EvalMetrics& metrics) = 0;
  virtual void write(const WorkerMetrics& metrics) = 0;
  virtual void write(const Summary& summary) = 0;
};

// Makes a writer of metrics. With an empty path it writes nothing. append: keep the lines in the
// file, for a resumed run. While the writer lives, other runs cannot write the file. Each line is
// written to the end of the file with one system call, so that several tasks of a run may share a
// file. Throws UsageError naming the file and the process if another run writes the file. Throws
// FileError naming the file.
std::unique_ptr<MetricsWriter> make_metrics_writer(const std::filesystem::path& path, bool append);
// Makes a writer of metrics that opens the file when its first line is written, and appends to it.
// Used by the workers of an asynchronous job, because one worker at a time reports. With an empty
// path it writes nothing. Writing the first line throws FileError if the file cannot be opened.
std::unique_ptr<MetricsWriter> make_late_metrics_writer(const std::filesystem::path& path);
// Makes a writer that passes everything on to both `first` and `second`.
std::unique_ptr<MetricsWriter> make_both(std::unique_ptr<MetricsWriter> first,
                                         std::unique_ptr<MetricsWriter> second);

// Sums of losses, times and samples over a number of training steps.
struct StepTotals {
  double loss = 0.0;  // sum of the mean losses of the steps
  double seconds = 0.0;
  std::int64_t steps = 0;
  double metric = 0.0;  // sum of the main metric over the samples
  std::int64_t samples = 0;

  // Adds the sums over all replicas and steps of a round, without its seconds.
  void add(const Scores& scores, std::int64_t round_steps) {
    loss += scores.loss;
    steps += round_steps;
    metric += scores.metrics[kMainMetric];
    samples += scores.num_samples;
  }
  // Returns the mean loss of a step; NaN if there was no step.
  double mean_loss() const {
    return steps > 0 ? loss / static_cast<double>(steps) : std::numeric_limits<double>::quiet_NaN();
  }
  // Returns the mean of the main metric over the samples. of: the kind of the network's loss.
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
