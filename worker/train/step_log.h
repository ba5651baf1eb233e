// Totals of the steps of this process, and what follows from them: the step lines of the metrics,
// the progress line, and notes about slow input. Times are measured on the first replica of this
// task. Used by the training loop of synchronous replicas (train_loop.cc).
#pragma once

#include <cstdint>
#include <optional>

#include "strategies/variable_store.h"
#include "worker/train/metrics.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// One thread only. The run and the options must outlive the object.
class StepLog {
 public:
  // total_steps: the number of the last step of the run.
  StepLog(const TrainingRun& run, const TrainLoopOptions& options, std::int64_t total_steps);

  const StepTotals& all() const noexcept { return all_; }
  double epoch_loss() const { return epoch_.mean_loss(); }
  // Returns the mean duration of the steps of this process; infinity before the first step.
  double seconds_per_step() const;

  // Begins to count for epoch_loss(). A round counts for the epoch in which it ends.
  void begin_epoch() { epoch_ = {}; }
  // Notes whether the steps since the last note waited for their input. If epochs are short,
  // several make one note. All tasks wait for the task with the slowest input, so that task is
  // noted. Every task calls it at the end of a round in which an epoch ended. Throws PeerError.
  void end_epoch();
  // Adds the seconds of a step. Called for each step, before end_round() and show().
  void add_seconds(double seconds);
  // Adds the sums of a round. report: of all replicas and steps of the round.
  void end_round(const StepReport& report);
  // Shows the progress after a step. The loss of a report in the middle of a round is this task's.
  void show(std::int64_t step, const StepReport& report);
  void write_line(const Progress& progress, double epochs, double learning_rate);

 private:
  double remaining_seconds(std::int64_t step) const;
  std::optional<LossScaleState> loss_scale() const;
  std::optional<StepMetrics::Round> last_round(const Progress& progress) const;
  CommunicationTimes times() const { return run_.strategy.replicas().front().variables->times(); }

  const TrainingRun& run_;
  const TrainLoopOptions& options_;
  const std::int64_t total_steps_;
  StepTotals all_;    // of the steps of this process
  StepTotals epoch_;  // of the steps since the epoch began
  StepTotals line_;   // of the steps since the last line of metrics
  double waited_before_line_ = 0.0;
  StepTotals judged_;           // of the steps since end_epoch() last said whether they wait
  double waited_before_ = 0.0;  // for input, before these steps
  CommunicationTimes times_before_line_;
  double shown_loss_ = 0.0;       // loss on the display, smoothed
  std::int64_t shown_steps_ = 0;  // steps of this process, with those of the current round
};

}  // namespace syncopate
