#include "worker/train/asynchronous_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
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

  // Polls for a request to stop. Called by the first replica's thread only.
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
  const std::int64_t batches_per_epoch = run.dataset_size / run.batch_size;
  const std::int64_t batches_per_step = run.samples_per_update / run.batch_size;
  const std::int64_t left = remaining_steps(options, start, run.dataset_size, run.batch_size);
  return {.log_every_steps = options.log_every_steps,
          .total_steps = start.at.step + (options.total_steps ? left : left / batches_per_step),
          .steps_per_epoch = std::max<std::int64_t>(batches_per_epoch / batches_per_step, 1),
          .samples_per_epoch = batches_per_epoch * run.batch_size,
          .start_samples = start.at.samples,
          .start_epochs = epochs_at(start.at.position, run.dataset_size, run.batch_size),
          .max_seconds = options.max_seconds,
          .head = start.head,
          .normalize = start.normalize,
          .local_updates = run.local_updates,
          .loss = run.graph.loss().kind};
}

// Sends the requests to stop of one replica to the coordinator, each once.
class StopRelay {
 public:
  StopRelay(StopRequest& request, AsynchronousJob& job, int replica)
      : request_(request), job_(job), polls_(replica == 0) {}

  // Whether this task was asked to stop. Called repeatedly while an evaluation runs.
  bool was_asked() {
    if (polls_) request_.listen();
    return request_.kind().has_value();
  }
  void pass_on() {
    if (!was_asked() || passed_on_) return;
    passed_on_ = true;
    job_.request_stop(*request_.kind());
  }
  // The job is complete: this worker reached --max-seconds, or a rule judged its evaluation so. The
  // first such worker ends training for the whole job.
  void complete() {
    if (is_complete_) return;
    is_complete_ = true;
    job_.request_stop(ps::StopKind::kComplete);
  }
  // Returns this task's request to stop; if it has none, `of_job`, the request that stopped the
  // job, so that all tasks end in the same way.
  std::optional<ps::StopKind> kind_or(std::optional<ps::StopKind> of_job) const {
    return request_.kind() ? request_.kind() : of_job;
  }

 private:
  StopRequest& request_;
  AsynchronousJob& job_;
  const bool polls_;  // true for the first replica of the task
  bool passed_on_ = false;
  bool is_complete_ = false;
};

// Counts the steps and times of one replica.
class OwnTimer {
 public:
  OwnTimer(const Replica& replica, const LeasedBatchSource& input)
      : replica_(replica), input_(input) {}

  JobMetrics::OwnTimes times() const {
    return {.steps = steps_,
            .step_seconds = step_seconds_,
            .input_wait_seconds = input_.counters().wait_seconds,
            .communication = replica_.variables->times()};
  }
  void begin() { at_begin_ = times(); }
  void add_step(std::int64_t samples, double seconds) {
    ++steps_;
    samples_ += samples;
    step_seconds_ += seconds;
  }
  std::int64_t steps() const noexcept { return steps_; }

  // Parts of `seconds` that the replica has waited for input or communication since begin().
  double input_wait_fraction(double seconds) const {
    return StepTotals::ratio(times().input_wait_seconds - at_begin_.input_wait_seconds, seconds);
  }
  double exposed_fraction(double seconds) const {
    const double exposed =
        times().communication.exposed_seconds - at_begin_.communication.exposed_seconds;
    return std::min(1.0, StepTotals::ratio(exposed, seconds));
  }

  // Returns the metrics line with this worker's times. seconds: duration of training. Call once,
  // because reading the loss scale may wait for the device.
  WorkerMetrics line(int worker, double seconds) const {
    const JobMetrics::OwnTimes own = times();
    const double exposed = own.communication.exposed_seconds;
    const std::optional<double> peers = own.communication.peers_wait_seconds;
    const auto scale = replica_.backend->loss_scale(*replica_.arena);
    return {.worker = worker,
            .steps = steps_,
            .samples = samples_,
            .seconds = seconds,
            .compute_seconds = std::max(0.0, own.step_seconds - exposed),
            .communication_exposed_seconds = exposed - peers.value_or(0.0),
            .peers_wait_seconds = peers,
            .input_wait_seconds = own.input_wait_seconds,
            .bytes_sent = own.communication.bytes_sent,
            .bytes_received = own.communication.bytes_received,
            .skipped_steps = scale ? std::optional(scale->skipped_steps) : std::nullopt,
            .dropped_steps = own.communication.dropped_steps};
  }

 private:
  const Replica& replica_;
  const LeasedBatchSource& input_;
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
  double step_seconds_ = 0.0;
  JobMetrics::OwnTimes at_begin_;
};

// Describes the steps of a worker with gradients that came too late; "" if there were none.
std::string describe_dropped(int worker, std::int64_t steps,
                             const std::optional<ps::DroppedSteps>& dropped) {
  if (!dropped || dropped->whole + dropped->in_part == 0) return "";
  return fmt::format(
      "worker {}: of the gradients of {} steps, {} came too late and were dropped, and {} were "
      "dropped in part",
      worker, steps, dropped->whole, dropped->in_part);
}

// The mean loss of the job since one worker began its last epoch.
class EpochLoss {
 public:
  bool has_begun() const noexcept { return epoch_.has_value(); }
  // Called before each step. `epoch` may be lower than at the last step, when the job leases
  // samples again that another worker did not train.
  void begin_step(std::int64_t epoch, const JobStatus& status) {
    if (!epoch_) at_begin_ = status;
    if (epoch_ && epoch <= *epoch_) return;
    epoch_ = epoch;
    at_epoch_ = status;
  }
  // Returns the mean loss since the last epoch began, or since the worker began while `status` has
  // no step of that epoch.
  double mean(const JobStatus& status) const {
    const JobStatus& from = status.step > at_epoch_.step ? at_epoch_ : at_begin_;
    return StepTotals{.loss = status.loss - from.loss, .steps = status.step - from.step}
        .mean_loss();
  }

 private:
  std::optional<std::int64_t> epoch_;  // the last epoch that the worker began
  JobStatus at_begin_;
  JobStatus at_epoch_;
};

// The training loop of one replica, on that replica's thread.
class ReplicaLoop {
 public:
  ReplicaLoop(const AsynchronousRun& run, const TrainLoopOptions& options, const Progress& start,
              Replica& replica, StopRequest& stop)
      : run_(run),
        options_(options),
        start_(start),
        replica_(replica),
        delays_(options.service_time, options.first_worker + replica.index,
                profile_of(run.graph, replica)),
        job_(asynchronous_job(run.strategy, replica.index)),
        input_(run.workers.at(static_cast<std::size_t>(replica.index)).input),
        stop_(stop, job_, replica.index),
        own_(replica, input_),
        log_(run.workers[static_cast<std::size_t>(replica.index)].metrics,
             run.workers[static_cast<std::size_t>(replica.index)].display,
             log_options(run, options, start)),
        duties_(run, options, start, replica) {}

  TrainOutcome run() {
    if (EvaluationRules(options_.rules, start_.at.rules).ends_training()) stop_.complete();
    while (const ps::SampleRange* range = next_lease()) {
      stop_.pass_on();
      if (options_.max_seconds > 0.0 && log_.seconds() >= options_.max_seconds) stop_.complete();
      train(*range);
      if (steps_in_round_ > 0) continue;
      if (const auto assignment = job_.next_assignment()) {
        carry_out(*assignment);
        // After an evaluation the replica's values are out of date. After the final evaluation no
        // worker trains, and the servers end.
        if (!assignment->is_final) job_.refresh();
      }
    }
    require_few_bad();
    // Writes this worker's line of the metrics when no batch is left. The worker that writes the
    // summary does not wait for it, so the line may follow the summary.
    if (own_.steps() > 0) {
      run_.workers.at(static_cast<std::size_t>(replica_.index))
          .metrics.write(own_.line(options_.first_worker + replica_.index, log_.seconds()));
    }
    note_input();
    note_dropped();
    stop_.pass_on();
    while (const auto assignment = job_.wait_assignment()) carry_out(*assignment);
    // Reads the request to stop now: a later one has no effect, because the job has ended.
    const std::optional<ps::StopKind> kind = stop_.kind_or(job_.status().stopped_by);
    duties_.end((kind && kind != ps::StopKind::kComplete) || outcome_.stopped_by,
                [this] { return stop_.was_asked(); });
    if (!is_last_) finish(job_.status(), kind);
    return std::move(outcome_);
  }
  bool is_last() const noexcept { return is_last_; }

 private:
  // Waits for the samples of the next batch; returns null at the end. A worker that has no batch
  // ends its round, because other workers may wait for the samples of this round.
  const ps::SampleRange* next_lease() {
    if (steps_in_round_ > 0 && !input_.await_lease()) {
      replica_.variables->end_round_early();
      steps_in_round_ = 0;
    }
    return input_.upcoming();
  }

  void train(ps::SampleRange range) {
    const JobStatus before = job_.status();
    if (!loss_.has_begun()) {
      own_.begin();
      log_.begin(before, own_.times());
    }
    loss_.begin_step(range.epoch, before);
    learning_rate_ = run_.schedule.learning_rate(epochs_at(
        {.epoch = range.epoch, .offset = range.begin}, run_.dataset_size, run_.batch_size));
    // A resumed run without the rule trains at the scheduled rate, whatever the checkpoint says.
    if (options_.rules.reduce_on_plateau) learning_rate_ *= before.learning_rate_factor;
    job_.begin_step(range);
    const Batch& batch = next_batch();
    const auto begun = Clock::now();
    const StepReport report = step(batch);
    steps_in_round_ = report.round_steps == 0 ? steps_in_round_ + 1 : 0;
    own_.add_step(report.scores.num_samples,
                  std::chrono::duration<double>(Clock::now() - begun).count());
    const JobStatus status = job_.status();
    if (!std::isfinite(report.scores.loss)) {
      throw diverged(describe_divergence(report.scores.loss),
                     {.step = status.step + steps_in_round_,
                      .learning_rate = learning_rate_,
                      .last_checkpoint = last_checkpoint(options_)});
    }
    require_few_bad();
    log_.step(status, job_.is_reporter(), learning_rate_, own_.times());
  }

  // Notes whether the steps waited for their input, once for this task.
  void note_input() {
    const JobMetrics::OwnTimes own = own_.times();
    const InputCounters input = input_.counters();
    const std::string line =
        describe_input_bound({.steps = own.steps,
                              .step_seconds = own.step_seconds + own.input_wait_seconds,
                              .wait_seconds = own.input_wait_seconds,
                              .readers = input.readers,
                              .most_readers = input.most_readers},
                             run_.input_means);
    if (replica_.index == 0 && !line.empty()) run_.workers.front().display.note(line);
  }

  void note_dropped() {
    const auto index = static_cast<std::size_t>(replica_.index);
    const std::string line = describe_dropped(options_.first_worker + replica_.index, own_.steps(),
                                              own_.times().communication.dropped_steps);
    if (!line.empty()) run_.workers.at(index).display.note(line);
  }

  const Batch& next_batch() {
    const Span span(replica_.trace, TraceKind::kInput);
    return input_.next();
  }

  StepReport step(const Batch& batch) {
    const Span span(replica_.trace, TraceKind::kStep, own_.steps() + 1);
    delays_.begin(own_.steps() + 1);
    return replica_step(
        replica_, batch,
        {.learning_rate = static_cast<float>(learning_rate_), .step = job_.status().step + 1}, {},
        &delays_);
  }

  // Every worker learns the job's count and fails alike, also with the samples of others.
  void require_few_bad() const {
    if (run_.bad_samples == nullptr) return;
    run_.bad_samples->require_few(job_.status().num_bad_in_epoch, "an epoch");
  }

  void carry_out(const Assignment& assignment) {
    log_.begin_as_reporter(assignment.status);
    // The training clock stops here, because no worker trains during the final evaluation.
    if (assignment.is_final) log_.end(assignment.status, own_.times());
    const EvalMetrics moment{.step = assignment.status.step,
                             .epoch = log_.epochs(assignment.status),
                             .trained_samples = assignment.status.samples,
                             .trained_seconds = log_.seconds(),
                             .began_at = log_.began_at()};
    Snapshot copy;
    try {
      copy = job_.read_snapshot(
          assignment,
          assignment.writes_checkpoint || (assignment.evaluates && run_.evaluation.uses_average));
    } catch (const ps::SnapshotWithdrawn&) {
      return;  // snapshot lost by a server: another assignment comes
    }
    const AssignmentRunner::Done done = duties_.carry_out(assignment, copy, moment, learning_rate_,
                                                          [this] { return stop_.was_asked(); });
    stop_.pass_on();
    if (assignment.is_final) finish(assignment, copy, done);
    Assignment ended = assignment;
    ended.rules = done.progress.at.rules;
    job_.done(ended);
    if (done.ends_training) stop_.complete();
  }

  void finish(const Assignment& last, const Snapshot& copy, const AssignmentRunner::Done& done) {
    is_last_ = true;
    finish(last.status, stop_.kind_or(last.status.stopped_by));
    outcome_.progress = done.progress;
    outcome_.checkpoint = done.checkpoint;
    outcome_.best = done.best;
    outcome_.test = done.test;
    outcome_.validation = done.validation;
    outcome_.has_last_snapshot = true;
    outcome_.weights_hash = weights_hash(copy.values);
    outcome_.staleness = last.staleness;
    outcome_.repeated_batches = last.repeated_batches;
    outcome_.saved_by_another = false;
    if (last.stopped_by && *last.stopped_by != ps::StopKind::kComplete) {
      outcome_.stopped_by = ps::stop_name(*last.stopped_by);
    } else if (done.test || !options_.evaluates()) {
      outcome_.stopped_by.reset();  // the request to stop came after the last evaluation
    }
  }

  // Fills the outcome with what this worker knows of the job. kind: the request to stop that ended
  // the job.
  void finish(const JobStatus& status, std::optional<ps::StopKind> kind) {
    outcome_.progress.at.step = status.step;
    outcome_.progress.at.samples = status.samples;
    outcome_.num_bad_in_epoch = status.num_bad_in_epoch;
    outcome_.seconds = log_.seconds();
    outcome_.samples_per_second = log_.samples_per_second(status);
    outcome_.train_loss = loss_.mean(status);
    outcome_.input_wait_fraction = own_.input_wait_fraction(outcome_.seconds);
    outcome_.communication_exposed_fraction = own_.exposed_fraction(outcome_.seconds);
    if (!kind || kind == ps::StopKind::kComplete) return;
    outcome_.stopped_by = ps::stop_name(*kind);
    // Another task wrote a checkpoint: a stopped job ends only after its last snapshot is saved.
    outcome_.saved_by_another = !options_.checkpoint_dir.empty();
  }

  const AsynchronousRun& run_;
  const TrainLoopOptions& options_;
  const Progress& start_;
  Replica& replica_;
  StepDelays delays_;
  AsynchronousJob& job_;
  LeasedBatchSource& input_;
  StopRelay stop_;
  OwnTimer own_;
  JobMetrics log_;
  AssignmentRunner duties_;
  EpochLoss loss_;
  double learning_rate_ = 0.0;
  std::int64_t steps_in_round_ = 0;  // that the replica has trained and not pushed
  bool is_last_ = false;
  TrainOutcome outcome_;
};

TrainOutcome run_replicas(const AsynchronousRun& run, const TrainLoopOptions& options,
                          const Progress& start) {
  StopRequest stop(run.stop);
  std::vector<TrainOutcome> outcomes(run.workers.size());
  std::atomic<std::size_t> reporter =
      0;  // index of the replica that made the final evaluation, else of the first one
  run.strategy.for_each_replica([&](Replica& replica) {
    const auto index = static_cast<std::size_t>(replica.index);
    ReplicaLoop loop(run, options, start, replica, stop);
    outcomes[index] = loop.run();
    if (loop.is_last()) reporter = index;
  });
  return std::move(outcomes[reporter]);
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
