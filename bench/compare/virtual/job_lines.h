// What a virtual job says of itself while it trains: sums over its batches, accounts of its
// workers, and the lines of metrics that follow from them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/compare/virtual/event_queue.h"
#include "bench/compare/virtual/plan.h"
#include "worker/train/evaluate.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// Where one worker's time went, and what it sent and got.
struct WorkerAccount {
  bool took_part = false;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  VirtualTime compute{0};        // service times, pauses included
  VirtualTime communication{0};  // messages under way, or waiting for a link
  VirtualTime peers{0};          // waiting for other workers, by whatever rule; for batches, too
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  VirtualTime all() const noexcept { return compute + communication + peers; }
};

// Of all batches trained so far.
struct JobSums {
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  double loss = 0.0;  // of the steps' mean losses
};

// One thread only.
class JobLines {
 public:
  JobLines(const VirtualPlan& plan, std::int64_t total_steps, MetricsWriter& metrics,
           const std::function<void(double)>& progress);

  const JobSums& sums() const noexcept { return sums_; }
  // A batch, or a whole step of workers in step, was trained. `steps`: that are done now.
  void add(const Scores& scores, std::int64_t steps);
  // The batches that follow are of a later epoch.
  void begin_epoch() { epoch_ = {.step = sums_.step}; }
  double train_loss() const;  // mean over the steps since begin_epoch()

  struct Moment {
    VirtualTime at{0};
    double epochs = 0.0;
    double learning_rate = 0.0;
    double staleness_mean = 0.0;
    std::int64_t staleness_max = 0;
  };
  // Writes a step line where one is due, and tells of progress.
  void step(const Moment& moment, std::span<const WorkerAccount> workers, bool is_last);
  void evaluation(const Moment& moment, const Evaluation& test);
  void workers(std::span<const WorkerAccount> workers);

 private:
  void write_line(const Moment& moment, std::span<const WorkerAccount> workers);

  const std::int64_t log_every_steps_;
  const std::int64_t total_steps_;
  MetricsWriter& metrics_;
  const std::function<void(double)>& progress_;
  JobSums sums_;
  // Since begin_epoch(), since the last line; `step` is the one before.
  JobSums epoch_;
  JobSums line_;
  VirtualTime line_at_{0};
  WorkerAccount all_at_line_;  // of all workers together
};

// Of all workers together.
WorkerAccount sum_of(std::span<const WorkerAccount> workers);

}  // namespace syncopate::bench
