// What one worker of an asynchronous job says of the whole job while it trains: step lines and the
// progress line, from the differences of what it hears (JobStatus). Used by asynchronous_loop.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "strategies/asynchronous_job.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"

namespace syncopate {

struct JobMetricsOptions {
  std::int64_t log_every_steps = 50;  // of the job
  std::int64_t total_steps = 0;       // at the end of the run
  std::int64_t steps_per_epoch = 0;
  std::int64_t samples_per_epoch = 0;  // that are trained: a remainder is dropped
  std::int64_t start_samples = 0;
  double start_epochs = 0.0;
  double max_seconds = 0.0;  // 0: no limit
};

// One thread only.
class JobMetrics {
 public:
  // This worker's own time; only differences count.
  struct OwnTimes {
    std::int64_t steps = 0;
    double step_seconds = 0.0;  // input excluded
    double input_wait_seconds = 0.0;
    CommunicationTimes communication;
  };

  JobMetrics(MetricsWriter& metrics, ProgressDisplay& display, const JobMetricsOptions& options);

  // The clock of all rates starts.
  void begin(const JobStatus& status, const OwnTimes& own);
  // After a step of this worker. Writes and shows only when it speaks for all; a line is due
  // whenever the job has passed a multiple of log_every_steps.
  void step(const JobStatus& status, bool is_reporter, double learning_rate, const OwnTimes& own);
  // It is to report on a job of which it has trained nothing yet, since it came late or once more:
  // its lines say when that was. After begin() nothing happens.
  void speak_before_beginning(const JobStatus& status);
  // The job has ended like this: the last line, of the steps since the one before.
  void end(const JobStatus& status, const OwnTimes& own);

  // Passes over the data.
  double epochs(const JobStatus& status) const;
  // Since begin(), until end().
  double seconds() const;
  double samples_per_second(const JobStatus& status) const;
  // As its lines say it; none before there is one.
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
  std::optional<double> began_at_;  // by the wall clock
  Clock::time_point begun_at_;
  Clock::time_point ended_at_;  // zero while it goes on
  JobStatus at_begin_;
  JobStatus at_line_;  // when the last line was written, by us or another worker
  OwnTimes own_at_line_;
  Clock::time_point line_at_;
  double learning_rate_ = 0.0;
  JobStatus shown_;
  double shown_loss_ = 0.0;  // smoothed, for people
};

}  // namespace syncopate
