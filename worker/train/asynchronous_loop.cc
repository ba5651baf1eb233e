#include "worker/train/asynchronous_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

#include "models/base/errors.h"
#include "ps/client/client_errors.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/train/assignment_runner.h"
#include "worker/train/job_metrics.h"
#include "worker/train/metrics.h"
#include "worker/train/train_loop.h"
#include "worker/train/train_step.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;

// A request to stop that reached this task. The first replica polls for it, and all replicas of the
// task read it.
class StopRequest {
 public:
  explicit StopRequest(const StopPoll& poll) : poll_(poll) {}

  // Called by the first replica's thread only.
  void listen() {
    if (const auto name = poll_()) kind_ = ps::stop_kind(*name);
  }
  std::optional<ps::StopKind> kind() const { return kind_; }

 private:
  const StopPoll& poll_;
  std::atomic<std::optional<ps::StopKind>> kind_;
};

JobMetricsOptions log_options(const AsynchronousRun& run, const TrainLoopOptions& options,
                              const Progress& start) {
  const std::int64_t steps_per_epoch = run.dataset_size / run.batch_size;
  return {.log_every_steps = options.log_every_steps,
          .total_steps =
              start.at.step + remaining_steps(options, start, run.dataset_size, run.batch_size),
          .steps_per_epoch = steps_per_epoch,
          .samples_per_epoch = steps_per_epoch * run.batch_size,
          .start_samples = start.at.samples,
          .start_epochs = epochs_at(start.at.position, run.dataset_size, run.batch_size),
          .max_seconds = options.max_seconds};
}

// The loop of one replica, on that replica's thread.
class ReplicaLoop {
 public:
  ReplicaLoop(const AsynchronousRun& run, const TrainLoopOptions& options, const Progress& start,
              Replica& replica, StopRequest& stop)
      : run_(run),
        options_(options),
        replica_(replica),
        delays_(options.service_time, options.first_worker + replica.index),
        job_(asynchronous_job(run.strategy, replica.index)),
        input_(run.workers.at(static_cast<std::size_t>(replica.index)).input),
        stop_(stop),
        log_(run.workers[static_cast<std::size_t>(replica.index)].metrics,
             run.workers[static_cast<std::size_t>(replica.index)].display,
             log_options(run, options, start)),
        duties_(run, options, start, replica) {}

  TrainOutcome run() {
    while (const ps::SampleRange* range = input_.upcoming()) {
      pass_on_stop();
      note_time();
      train(*range);
      if (const auto assignment = job_.next_assignment()) {
        carry_out(*assignment);
        // The values are out of date after an evaluation. After the final one no worker trains, and
        // servers end.
        if (!assignment->is_final) job_.refresh();
      }
    }
    write_times();
    pass_on_stop();
    while (const auto assignment = job_.wait_assignment()) carry_out(*assignment);
    // A request to stop that comes later has no effect, because the job has ended.
    const std::optional<ps::StopKind> kind = stop_kind();
    duties_.end((kind && kind != ps::StopKind::kTimeIsUp) || outcome_.stopped_by, asked_to_stop());
    if (!is_last_) finish(job_.status(), kind);
    return std::move(outcome_);
  }
  bool is_last() const noexcept { return is_last_; }

 private:
  // Polled while an evaluation runs.
  std::function<bool()> asked_to_stop() {
    return [this] {
      if (replica_.index == 0) stop_.listen();
      return stop_.kind().has_value();
    };
  }
  // A task that received no request itself ends in the same way as the task that did.
  std::optional<ps::StopKind> stop_kind() const {
    return stop_.kind() ? stop_.kind() : job_.status().stopped_by;
  }
  void pass_on_stop() {
    if (replica_.index == 0) stop_.listen();
    if (passed_on_ || !stop_.kind()) return;
    passed_on_ = true;
    job_.request_stop(*stop_.kind());
  }

  // The first worker that reaches --max-seconds ends training for the whole job.
  void note_time() {
    if (options_.max_seconds <= 0.0 || is_time_up_ || log_.seconds() < options_.max_seconds) return;
    is_time_up_ = true;
    job_.request_stop(ps::StopKind::kTimeIsUp);
  }

  void train(ps::SampleRange range) {
    if (!epoch_) {
      at_begin_ = job_.status();
      own_at_begin_ = own();
      log_.begin(at_begin_, own_at_begin_);
    }
    if (!epoch_ ||
        range.epoch > *epoch_) {  // a lease of an earlier epoch may return from another worker
      epoch_ = range.epoch;
      at_epoch_ = job_.status();
    }
    learning_rate_ = run_.schedule.learning_rate(epochs_at(
        {.epoch = range.epoch, .offset = range.begin}, run_.dataset_size, run_.batch_size));
    job_.begin_step(range);
    const Batch& batch = input_.next();
    const auto begun = Clock::now();
    delays_.spend(steps_ + 1);
    const StepReport report = replica_step(
        replica_, batch,
        {.learning_rate = static_cast<float>(learning_rate_), .step = job_.status().step + 1});
    step_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
    ++steps_;
    samples_ += report.scores.num_samples;
    const JobStatus status = job_.status();
    if (!std::isfinite(report.scores.loss)) {
      throw diverged(describe_divergence(report.scores.loss),
                     {.step = status.step,
                      .learning_rate = learning_rate_,
                      .last_checkpoint = last_checkpoint(options_)});
    }
    log_.step(status, job_.is_reporter(), learning_rate_, own());
  }

  void carry_out(const Assignment& assignment) {
    log_.begin_as_reporter(assignment.status);
    // The clock stops here, because no worker trains during the final evaluation.
    if (assignment.is_final) log_.end(assignment.status, own());
    const EvalMetrics moment{.step = assignment.status.step,
                             .epoch = log_.epochs(assignment.status),
                             .trained_samples = assignment.status.samples,
                             .trained_seconds = log_.seconds(),
                             .began_at = log_.began_at()};
    Snapshot copy;
    try {
      copy = job_.read_snapshot(assignment, assignment.writes_checkpoint);
    } catch (const ps::SnapshotWithdrawn&) {
      return;  // another assignment comes
    }
    const AssignmentRunner::Done done =
        duties_.carry_out(assignment, copy, moment, learning_rate_, asked_to_stop());
    pass_on_stop();
    if (assignment.is_final) finish(assignment, copy, done);
    job_.done(assignment);
  }

  // Written when this worker has nothing left to train, so that the summary comes after it.
  void write_times() {
    if (steps_ == 0) return;
    const JobMetrics::OwnTimes times = own();
    const double exposed = times.communication.exposed_seconds;
    const std::optional<double> peers = times.communication.peers_wait_seconds;
    run_.workers.at(static_cast<std::size_t>(replica_.index))
        .metrics.write(WorkerMetrics{.worker = options_.first_worker + replica_.index,
                                     .steps = steps_,
                                     .samples = samples_,
                                     .seconds = log_.seconds(),
                                     .compute_seconds = std::max(0.0, times.step_seconds - exposed),
                                     .communication_exposed_seconds = exposed - peers.value_or(0.0),
                                     .peers_wait_seconds = peers,
                                     .input_wait_seconds = times.input_wait_seconds,
                                     .bytes_sent = times.communication.bytes_sent,
                                     .bytes_received = times.communication.bytes_received,
                                     .skipped_steps = skipped_steps()});
  }

  // May wait for the device, so it is called once, at the end.
  std::optional<std::int64_t> skipped_steps() const {
    const auto scale = replica_.backend->loss_scale(*replica_.arena);
    return scale ? std::optional(scale->skipped_steps) : std::nullopt;
  }

  void finish(const Assignment& last, const Snapshot& copy, const AssignmentRunner::Done& done) {
    is_last_ = true;
    finish(last.status, stop_.kind() ? stop_.kind() : last.status.stopped_by);
    outcome_.progress = done.progress;
    outcome_.checkpoint = done.checkpoint;
    outcome_.test = done.test;
    outcome_.weights_hash = weights_hash(copy.values);
    outcome_.staleness = last.staleness;
    outcome_.saved_by_another = false;
    if (last.stopped_by && *last.stopped_by != ps::StopKind::kTimeIsUp) {
      outcome_.stopped_by = ps::stop_name(*last.stopped_by);
    } else if (done.test) {
      outcome_.stopped_by.reset();  // the request came after the last evaluation
    }
  }

  // Fills the outcome from what this worker knows. kind: the request to stop that ended the job.
  void finish(const JobStatus& status, std::optional<ps::StopKind> kind) {
    outcome_.progress.at.step = status.step;
    outcome_.progress.at.samples = status.samples;
    outcome_.seconds = log_.seconds();
    outcome_.samples_per_second = log_.samples_per_second(status);
    outcome_.train_loss = mean_loss(status);
    const JobMetrics::OwnTimes times = own();
    outcome_.input_wait_fraction = StepTotals::ratio(
        times.input_wait_seconds - own_at_begin_.input_wait_seconds, outcome_.seconds);
    const double exposed =
        times.communication.exposed_seconds - own_at_begin_.communication.exposed_seconds;
    outcome_.communication_exposed_fraction =
        std::min(1.0, StepTotals::ratio(exposed, outcome_.seconds));
    if (!kind || kind == ps::StopKind::kTimeIsUp) return;
    outcome_.stopped_by = ps::stop_name(*kind);
    // The job ends only after its last snapshot has been written.
    outcome_.saved_by_another = !options_.checkpoint_dir.empty();
  }

  // The mean since this worker began its last epoch; when no step of that epoch is known here yet,
  // the mean since this worker began.
  double mean_loss(const JobStatus& status) const {
    const JobStatus& from = status.step > at_epoch_.step ? at_epoch_ : at_begin_;
    return StepTotals{.loss = status.loss - from.loss, .steps = status.step - from.step}
        .mean_loss();
  }

  JobMetrics::OwnTimes own() const {
    return {.steps = steps_,
            .step_seconds = step_seconds_,
            .input_wait_seconds = input_.counters().wait_seconds,
            .communication = replica_.variables->times()};
  }

  const AsynchronousRun& run_;
  const TrainLoopOptions& options_;
  Replica& replica_;
  StepDelays delays_;
  AsynchronousJob& job_;
  LeasedBatchSource& input_;
  StopRequest& stop_;
  JobMetrics log_;
  AssignmentRunner duties_;
  std::optional<std::int64_t> epoch_;  // the last epoch that this replica began
  JobStatus at_begin_;
  JobStatus at_epoch_;
  JobMetrics::OwnTimes own_at_begin_;
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
  double step_seconds_ = 0.0;
  double learning_rate_ = 0.0;
  bool passed_on_ = false;
  bool is_time_up_ = false;
  bool is_last_ = false;
  TrainOutcome outcome_;
};

TrainOutcome run_replicas(const AsynchronousRun& run, const TrainLoopOptions& options,
                          const Progress& start) {
  StopRequest stop(run.stop);
  std::vector<TrainOutcome> outcomes(run.workers.size());
  std::atomic<std::size_t> speaker =
      0;  // the replica that made the final evaluation, else the first
  run.strategy.for_each_replica([&](Replica& replica) {
    const auto index = static_cast<std::size_t>(replica.index);
    ReplicaLoop loop(run, options, start, replica, stop);
    outcomes[index] = loop.run();
    if (loop.is_last()) speaker = index;
  });
  return std::move(outcomes[speaker]);
}

}  // namespace

TrainOutcome train_asynchronously(const AsynchronousRun& run, const TrainLoopOptions& options,
                                  const Progress& start) {
  const auto finish_displays = [&] {
    for (const AsynchronousWorker& worker : run.workers) worker.display.finish();
  };
  try {
    TrainOutcome outcome = run_replicas(run, options, start);
    finish_displays();
    return outcome;
  } catch (...) {
    finish_displays();  // so that the error gets a line of its own
    throw;
  }
}

}  // namespace syncopate
