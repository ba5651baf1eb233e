// The metrics of a virtual job: sums over its batches, the time accounts of its workers, and the
// lines of metrics that are written from both.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/virtual_clock/event_queue.h"
#include "bench/virtual_clock/virtual_plan.h"
#include "bench/virtual_clock/worker_account.h"
#include "ps/shard/shard.h"
#include "strategies/asynchronous_job.h"
#include "worker/train/evaluate.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {

// Sums over the trained batches of a virtual job.
struct JobSums {
  std::int64_t step = 0;
  std::int64_t samples = 0;
  double metric = 0.0;
  double loss = 0.0;  // sum of the steps' mean losses
};

// Collects and writes the metrics of one virtual job. One thread only.
class JobLines {
 public:
  JobLines(const VirtualPlan& plan, std::int64_t total_steps, MetricsWriter& metrics,
           std::function<void(double)> progress);

  const JobSums& sums() const noexcept { return sums_; }
  // Adds the scores of a trained batch or, in a synchronous job, of a whole step. steps: the number
  // of steps completed so far.
  void add(const Scores& scores, std::int64_t steps);
  // Resets train_loss(). Called before the first batch of an epoch.
  void begin_epoch() { epoch_ = {.step = sums_.step}; }
  double train_loss() const;  // mean over the steps since begin_epoch()

  struct Moment {
    VirtualTime at{0};
    double epochs = 0.0;
    double learning_rate = 0.0;
    double staleness_mean = 0.0;
    std::int64_t staleness_max = 0;
    std::optional<StepMetrics::Round> round{};  // the last round; nullopt before the first one
  };
  // Reports the progress of the job, and writes a step line if the next line is due after this
  // step.
  void step(const Moment& moment, std::span<const WorkerAccount> workers, bool is_last);
  void evaluation(const Moment& moment, const Evaluation& test);
  void workers(std::span<const WorkerAccount> workers);

 private:
  void write_line(const Moment& moment, std::span<const WorkerAccount> workers);

  const std::int64_t log_every_steps_;
  const bool on_validation_;  // whether evaluations are on the validation split
  const std::int64_t total_steps_;
  MetricsWriter& metrics_;
  const std::function<void(double)> progress_;
  JobSums sums_;
  // epoch_ has the sums since the epoch began, line_ the sums since the last line of metrics. In
  // both, `step` is the number of the last step before these sums began.
  JobSums epoch_;
  JobSums line_;
  VirtualTime line_at_{0};
  WorkerAccount all_at_line_;  // sum over all workers when the last line was written
};

// The result of a virtual job.
struct VirtualOutcome {
  JobSums sums;
  VirtualTime end{0};
  double train_loss = 0.0;
  Evaluation test;
  std::optional<Evaluation> validation{};
  std::string weights_hash;
  std::vector<WorkerAccount> accounts;       // one account per worker
  std::vector<WorkerStaleness> staleness{};  // by worker; empty for a synchronous job
  std::int64_t summed_steps = 0;             // steps before the first round of local updates
};

// Throws DivergenceError, naming step and learning rate, if one of the tensors of a job is not
// finite: the values, or a slot of the optimizer.
void require_finite(std::span<const Tensor> tensors, std::int64_t step, double learning_rate);
// Returns the values and slots of a shard.
std::vector<Tensor> tensors_of(const ps::Shard& shard);

}  // namespace syncopate::bench
