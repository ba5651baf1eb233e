// Metrics of a whole job. JobMetrics writes the step lines and the progress line of an asynchronous
// job (asynchronous_loop.cc); WorkerTimes writes the times of all synchronous workers
// (train_loop.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/asynchronous_job.h"
#include "strategies/collective/collective.h"
#include "strategies/strategy.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"

namespace syncopate {

struct JobMetricsOptions {
  std::int64_t log_every_steps = 50;  // updates of the job between two lines of metrics
  std::int64_t total_steps = 0;       // number of steps at the end of the run
  std::int64_t steps_per_epoch = 0;
  std::int64_t samples_per_epoch = 0;  // samples trained per epoch, without the dropped remainder
  std::int64_t start_samples = 0;
  double start_epochs = 0.0;
  double max_seconds = 0.0;  // 0: no limit
  std::string head{};        // --head, for the "begin" line
  std::string normalize{};
  std::optional<LocalUpdateOptions> local_updates = {};  // for the "begin" line
  LossKind loss = LossKind::kSoftmaxCrossEntropy;        // the network's loss
};

// Computes and writes the metrics of an asynchronous job in one worker. One worker at a time
// reports for the whole job. The metrics are computed from differences between the JobStatus values
// that this worker receives. One thread only.
class JobMetrics {
 public:
  // Totals of this worker's own steps and times. JobMetrics uses only differences between totals.
  struct OwnTimes {
    std::int64_t steps = 0;
    double step_seconds = 0.0;  // time in steps without waiting for input
    double input_wait_seconds = 0.0;
    CommunicationTimes communication;
  };

  JobMetrics(MetricsWriter& metrics, ProgressDisplay& display, const JobMetricsOptions& options);

  // Starts the clock for all rates in this worker's lines.
  void begin(const JobStatus& status, const OwnTimes& own);
  // Writes a line of metrics if one is due, and updates the progress line. Called after each step
  // of this worker. is_reporter: whether this worker reports for the job now; if it does not,
  // nothing is written or shown. A line of metrics is due when the job has passed a multiple of
  // log_every_steps.
  void step(const JobStatus& status, bool is_reporter, double learning_rate, const OwnTimes& own);
  // Writes the "begin" line, with the time at which this worker's clock began, if this worker
  // joined late or was restarted. Does nothing if begin() was called. Called when this worker
  // begins to report for the job.
  void begin_as_reporter(const JobStatus& status);
  // Writes a line of metrics about the steps since the previous line, and stops the clock. Called
  // when the job has ended with `status`.
  void end(const JobStatus& status, const OwnTimes& own);

  // Returns the number of passes over the data set that the job has made so far.
  double epochs(const JobStatus& status) const;
  // Returns the seconds from begin() until end(), or until now if end() was not called yet.
  double seconds() const;
  double samples_per_second(const JobStatus& status) const;
  // Returns the time that this worker's "begin" line has as BeginMetrics::began_at, in seconds
  // since 1970 UTC; nullopt before this line is written.
  std::optional<double> began_at() const noexcept { return began_at_; }

 private:
  using Clock = std::chrono::steady_clock;

  void write_begin(const JobStatus& status);
  void write_line(const JobStatus& status, const OwnTimes& own);
  void start_line(const JobStatus& status, const OwnTimes& own);
  void show(const JobStatus& status);

  MetricsWriter& metrics_;
  ProgressDisplay& display_;
  const JobMetricsOptions options_;
  bool begun_ = false;
  std::optional<double> began_at_;  // wall clock at begin()
  Clock::time_point begun_at_;
  Clock::time_point ended_at_;  // the zero time point before end()
  JobStatus at_begin_;
  JobStatus at_line_;  // status at the last line, which this or another worker wrote
  OwnTimes own_at_line_;
  Clock::time_point line_at_;
  double learning_rate_ = 0.0;
  JobStatus shown_;
  double shown_loss_ = 0.0;  // loss on the display, smoothed
  MetricValue shown_metric_;
};

// Measures the times of this task's synchronous workers, and gathers the times of all workers when
// training has ended. One thread only. The strategy must outlive this object.
class WorkerTimes {
 public:
  // Starts to measure: all times count from the construction of this object.
  explicit WorkerTimes(Strategy& strategy);

  struct Totals {
    std::int64_t steps = 0;
    std::int64_t samples = 0;  // samples of all replicas
    double seconds = 0.0;      // duration of the steps
    double input_wait_seconds = 0.0;
  };
  struct OfJob {
    // The fraction of time in which a task waited for input, for the task with the largest
    // fraction.
    double longest_input_wait = 0.0;
    std::optional<std::int64_t> bytes_sent = {};  // by all tasks; nullopt if they are not counted
  };
  // Writes a line of metrics for each worker of the job; every task calls this function.
  OfJob write(const Totals& totals, MetricsWriter& metrics) const;
  // Returns how long the first replica of this task waited for other replicas since construction.
  double exposed_seconds() const;
  // Returns the same without the time spent waiting for slower replicas.
  double exchange_seconds() const;

 private:
  Strategy& strategy_;
  std::vector<CommunicationTimes> at_start_;  // one per replica of this task
};

}  // namespace syncopate
