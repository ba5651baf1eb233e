#include "worker/train/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "worker/checkpoint/checkpoint.h"
#include "worker/input/batches/batch_plan.h"
#include "worker/train/job_metrics.h"
#include "worker/train/metrics.h"
#include "worker/train/train_step.h"

namespace syncopate {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Returns the plan of the batches that follow a position. The position of batch(0) is the normal
// form of a position: the end of an epoch and the start of the next one are the same place.
BatchPlan plan_from(const ps::DataPosition& position, std::int64_t dataset_size,
                    std::int64_t global_batch) {
  return {dataset_size, {.batch_size = global_batch}, position};
}

// Totals of the steps of this process, and what follows from them: the step lines of the metrics
// and the progress line. Times are measured on the first replica of this task.
class StepLog {
 public:
  StepLog(const TrainingRun& run, const TrainLoopOptions& options, std::int64_t total_steps)
      : run_(run),
        options_(options),
        total_steps_(total_steps),
        waited_before_(run.input.counters().wait_seconds),
        times_before_line_(times()) {}

  const StepTotals& all() const noexcept { return all_; }
  double epoch_loss() const { return epoch_.mean_loss(); }

  void begin_epoch() { epoch_ = {}; }
  // Notes whether the steps since the last note waited for their input. If epochs are short,
  // several make one note. All tasks wait for the task with the slowest input, so that task is
  // noted. Every task calls it at the end of an epoch. Throws PeerError.
  void end_epoch() {
    const InputCounters now = run_.input.counters();
    const TaskInput own{.wait = {.steps = judged_.steps,
                                 .step_seconds = judged_.seconds,
                                 .wait_seconds = now.wait_seconds - waited_before_,
                                 .readers = now.readers,
                                 .most_readers = now.most_readers},
                        .means = run_.input_means};
    const std::vector<double> all = synchronous_job(run_.strategy).gather(own.as_numbers());
    const TaskInput slowest = longest_wait(all);
    if (!is_enough(slowest.wait)) return;
    judged_ = {};
    waited_before_ = now.wait_seconds;
    const std::string line = describe_input_bound(slowest.wait, slowest.means);
    if (line.empty()) return;
    const bool is_one_task = all.size() == TaskInput::kNumbers;
    run_.display.note(is_one_task ? line : fmt::format("task {}: {}", slowest.task, line));
  }
  void add(const Scores& scores, double seconds) {
    for (StepTotals* totals : {&all_, &epoch_, &line_, &judged_}) totals->add(scores, seconds);
  }

  void show(std::int64_t step, double loss) {
    shown_loss_ = shown_steps_++ == 0 ? loss : 0.95 * shown_loss_ + 0.05 * loss;
    const std::int64_t per_epoch = run_.dataset_size / run_.global_batch;
    run_.display.update(ProgressState{.epoch = (step - 1) / per_epoch + 1,
                                      .total_epochs = (total_steps_ + per_epoch - 1) / per_epoch,
                                      .step = step,
                                      .total_steps = total_steps_,
                                      .loss = shown_loss_,
                                      .metric = line_.mean_metric(run_.graph.loss().kind),
                                      .samples_per_second = all_.samples_per_second(),
                                      .remaining_seconds = remaining_seconds(step)});
  }

  void write_line(const Progress& progress, double epochs, double learning_rate) {
    const double waited = run_.input.counters().wait_seconds;
    const CommunicationTimes now = times();
    const double steps = static_cast<double>(std::max<std::int64_t>(line_.steps, 1));
    const double exposed = now.exposed_seconds - times_before_line_.exposed_seconds;
    const double under_way = now.under_way_seconds - times_before_line_.under_way_seconds;
    const double input_wait = waited - waited_before_line_;
    run_.metrics.write(
        StepMetrics{.step = progress.at.step,
                    .epoch = epochs,
                    .loss = line_.mean_loss(),
                    .metric = line_.mean_metric(run_.graph.loss().kind),
                    .learning_rate = learning_rate,
                    .samples = progress.at.samples,
                    .seconds = all_.seconds,
                    .samples_per_second = line_.samples_per_second(),
                    .input_wait_fraction = StepTotals::ratio(input_wait, line_.seconds),
                    .compute_seconds = std::max(0.0, line_.seconds - input_wait - exposed) / steps,
                    .communication_exposed_seconds = exposed / steps,
                    .communication_hidden_seconds = std::max(0.0, under_way - exposed) / steps,
                    .loss_scale = loss_scale()});
    waited_before_line_ = waited;
    times_before_line_ = now;
    line_ = {};
  }

 private:
  double remaining_seconds(std::int64_t step) const {
    const double seconds_per_step = all_.seconds / static_cast<double>(all_.steps);
    const double to_the_end = seconds_per_step * static_cast<double>(total_steps_ - step);
    if (options_.max_seconds <= 0.0) return to_the_end;
    return std::min(to_the_end, std::max(0.0, options_.max_seconds - all_.seconds));
  }

  std::optional<LossScaleState> loss_scale() const {
    if (!run_.metrics.is_read())
      return std::nullopt;  // reading the scale makes the host wait for the device
    const Replica& replica = run_.strategy.replicas().front();
    return replica.backend->loss_scale(*replica.arena);
  }
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
  double shown_loss_ = 0.0;  // loss on the display, smoothed
  std::int64_t shown_steps_ = 0;
};

class TrainLoop {
 public:
  TrainLoop(const TrainingRun& run, const TrainLoopOptions& options, const Progress& start)
      : run_(run),
        options_(options),
        progress_(start),
        rules_(options.rules, start.at.rules),
        log_(run, options, start.at.step + remaining_steps()),
        worker_times_(run.strategy) {
    if (!options_.checkpoint_dir.empty() && progress_.at.step > 0) saved_step_ = progress_.at.step;
    const InputShard shard = run_.strategy.evaluation_shard();
    for (const Replica& replica : run_.strategy.replicas()) {
      delays_.emplace_back(options_.service_time, shard.first + replica.index,
                           profile_of(run_.graph, replica));
    }
  }

  TrainOutcome run() {
    if (!finished()) {
      run_.metrics.write(BeginMetrics{.step = progress_.at.step,
                                      .samples = progress_.at.samples,
                                      .began_at = wall_clock_seconds(),
                                      .head = progress_.head,
                                      .normalize = progress_.normalize});
    }
    // The checkpoint of a run that was stopped in an evaluation lacks what the evaluation causes.
    if (rules_.any() && !finished() && progress_.at.step > rules_.judged_step() &&
        evaluation_due(position().offset == 0 && position().untrained.empty()) && !evaluate()) {
      return stopped(run_.evaluator.stopped_by());
    }
    while (!finished()) {
      const std::int64_t epoch_before = position().epoch;
      train_one();
      const bool epoch_ended = position().epoch != epoch_before;
      if (epoch_ended || finished()) log_.end_epoch();
      if (progress_.at.step % options_.log_every_steps == 0 || finished()) {
        log_.write_line(progress_, epochs(), learning_rate_);
      }
      const auto signal = asked_to_stop();
      const bool is_checkpoint_due = finished() || checkpoint_due(epoch_ended);
      // A checkpoint contains what the rules have made of the evaluation of its step.
      const bool judges = rules_.any() && (finished() || evaluation_due(epoch_ended));
      if (signal || (is_checkpoint_due && !judges)) save();
      if (signal) return stopped(*signal);
      if ((judges || (!finished() && evaluation_due(epoch_ended))) && !evaluate()) {
        save();
        return stopped(run_.evaluator.stopped_by());
      }
      if (judges && (is_checkpoint_due || finished() || options_.rules.keeps_best)) save();
    }
    require_finite(run_.strategy.snapshot());
    const bool is_evaluated = rules_.any() && rules_.judged_step() == progress_.at.step && test_;
    if (options_.evaluates() && !is_evaluated && !evaluate()) {
      return stopped(run_.evaluator.stopped_by());
    }
    if (options_.evaluates() && run_.final_test != nullptr) {
      validation_ = std::exchange(test_, std::nullopt);
      const Span span(run_.strategy.replicas().front().trace, TraceKind::kEvaluation,
                      progress_.at.step);
      Evaluator test(run_.strategy, run_.graph, *run_.final_test, run_.evaluator.options());
      test_ = test.run(run_.stop, show_progress(run_.display, "testing"));
      if (!test_) return stopped(test.stopped_by());
    }
    if (const StepTotals& all = log_.all(); all.steps > 0) {
      input_wait_fraction_ =
          worker_times_.write({.steps = all.steps,
                               .samples = all.samples,
                               .seconds = all.seconds,
                               .input_wait_seconds = run_.input.counters().wait_seconds},
                              run_.metrics);
      for (const double idle : synchronous_job(run_.strategy).idle_seconds()) {
        stage_idle_fractions_.push_back(StepTotals::ratio(idle, all.seconds));
      }
    }
    return outcome();
  }

 private:
  ps::DataPosition position() const {
    return plan_from(progress_.at.position, run_.dataset_size, run_.global_batch).batch(0).position;
  }
  double epochs() const {
    return epochs_at(progress_.at.position, run_.dataset_size, run_.global_batch);
  }
  bool finished() const {
    return remaining_steps() <= 0 || stops_of_all_[ps::StopKind::kComplete] > 0 ||
           rules_.ends_training();
  }
  std::int64_t remaining_steps() const {
    return syncopate::remaining_steps(options_, progress_, run_.dataset_size, run_.global_batch);
  }
  bool checkpoint_due(bool epoch_ended) const {
    if (options_.checkpoint_every_steps == 0) return epoch_ended;
    return progress_.at.step % options_.checkpoint_every_steps == 0;
  }
  bool evaluation_due(bool epoch_ended) const {
    if (options_.eval_every_steps > 0) return progress_.at.step % options_.eval_every_steps == 0;
    return epoch_ended && options_.eval_every_epochs > 0 &&
           position().epoch % options_.eval_every_epochs == 0;
  }

  void train_one() {
    const ps::DataPosition now = position();
    if (now.offset == 0 && now.untrained.empty()) log_.begin_epoch();
    learning_rate_ = run_.schedule.learning_rate(epochs()) * rules_.learning_rate_factor();
    if (const auto signal = run_.stop()) note_stop(*signal);
    if (is_time_up()) stops_[ps::StopKind::kComplete] = 1;
    const auto begun = Clock::now();
    const StepReport report = train_step(
        run_.strategy, run_.input,
        {.learning_rate = static_cast<float>(learning_rate_), .step = progress_.at.step + 1},
        stops_, delays_);
    const double seconds = seconds_since(begun);
    const Scores& scores = report.scores;
    ++progress_.at.step;
    stops_of_all_ = report.stops;
    if (run_.membership != nullptr) run_.membership->report_step(progress_.at.step);
    if (!std::isfinite(scores.loss)) {
      throw diverged_here(describe_divergence(scores.loss));
    }
    require_few_bad(now, scores.num_bad);
    progress_.at.samples += scores.num_samples;
    progress_.at.position = run_.input.position();
    log_.add(scores, seconds);
    log_.show(progress_.at.step, scores.loss);
  }

  // Counts the bad samples of the epoch, of all replicas together.
  void require_few_bad(const ps::DataPosition& at, std::int64_t num_bad) {
    if (run_.bad_samples == nullptr || !at.untrained.empty()) return;  // from earlier epochs
    if (at.offset == 0) num_bad_ = 0;
    num_bad_ += num_bad;
    most_bad_ = std::max(most_bad_, num_bad_);
    run_.bad_samples->require_few(num_bad_, fmt::format("epoch {}", at.epoch + 1));
  }

  // Whether the time of this task is up. All tasks end after the step that one task reports it in.
  bool is_time_up() const {
    return options_.max_seconds > 0.0 && log_.all().seconds >= options_.max_seconds;
  }

  void note_stop(std::string_view signal) { stops_[ps::stop_kind(signal)] = 1; }

  // Returns the request to stop that some task reported with the gradients of the last step.
  std::optional<std::string_view> asked_to_stop() const {
    if (const auto kind = stops_of_all_.early_stop()) return ps::stop_name(*kind);
    return std::nullopt;
  }

  // Evaluates the watched split. Returns false when a request to stop ended the evaluation.
  bool evaluate() {
    const Span span(run_.strategy.replicas().front().trace, TraceKind::kEvaluation,
                    progress_.at.step);
    test_ = run_.evaluator.run(run_.stop, show_progress(run_.display, "evaluating"));
    if (!test_) return false;
    const EvalMetrics line{.step = progress_.at.step,
                           .epoch = epochs(),
                           .result = *test_,
                           .on_validation = run_.final_test != nullptr,
                           .trained_samples = progress_.at.samples,
                           .trained_seconds = log_.all().seconds};
    run_.metrics.write(line);
    run_.display.note(describe(line));
    // All tasks have the same evaluation, so all decide alike.
    for (const std::string& note : rules_.judge(progress_.at.step, *test_)) run_.display.note(note);
    progress_.at.rules = rules_.state();
    if (run_.rules_by_step != nullptr && rules_.any()) {
      (*run_.rules_by_step)[progress_.at.step] = progress_.at.rules;
    }
    return true;
  }

  void save() {
    if (options_.checkpoint_dir.empty() || saved_step_ == progress_.at.step) return;
    const Span span(run_.strategy.replicas().front().trace, TraceKind::kCheckpoint,
                    progress_.at.step);
    synchronous_job(run_.strategy).agree();
    const Snapshot now = run_.strategy.snapshot();
    require_finite(now);  // the values may diverge one step before the loss
    saved_step_ = progress_.at.step;
    if (run_.strategy.is_chief()) {
      const auto path = checkpoint_path(options_.checkpoint_dir, progress_.at.step);
      if (options_.checkpoint_lock != nullptr) options_.checkpoint_lock->renew();
      save_checkpoint(path, run_.graph, now, run_.optimizer, progress_);
      prune_checkpoints(options_.checkpoint_dir, options_.keep_checkpoints, rules_.best_step());
    }
    wait_for_chief();
  }

  // Waits until the chief has written its checkpoint. Without it the other tasks would wait in the
  // next step, which counts as training time, and would report "saved" too early.
  void wait_for_chief() {
    constexpr double kDone = 1.0;
    synchronous_job(run_.strategy).gather({&kDone, 1});
  }

  void require_finite(const Snapshot& now) const {
    if (!all_finite(now)) {
      throw diverged_here("the weights or the optimizer's slots are no longer finite");
    }
  }

  DivergenceError diverged_here(const std::string& what) const {
    DivergencePlace place{.step = progress_.at.step, .learning_rate = learning_rate_};
    if (saved_step_ > 0) {
      place.last_checkpoint = checkpoint_path(options_.checkpoint_dir, saved_step_);
    }
    return diverged(what, place);
  }

  TrainOutcome stopped(std::string_view signal) {
    wait_for_chief();
    TrainOutcome result = outcome();
    result.stopped_by = std::string(signal);
    result.test.reset();
    result.validation.reset();
    return result;
  }

  TrainOutcome outcome() {
    TrainOutcome result;
    result.progress = progress_;
    if (saved_step_ > 0 && saved_step_ == progress_.at.step) {
      result.checkpoint = checkpoint_path(options_.checkpoint_dir, saved_step_);
    }
    if (rules_.best_step() > 0) {
      result.best = checkpoint_path(options_.checkpoint_dir, rules_.best_step());
    }
    result.num_bad_in_epoch = most_bad_;
    result.test = test_;
    result.validation = validation_;
    const StepTotals& all = log_.all();
    result.seconds = all.seconds;
    result.samples_per_second = all.samples_per_second();
    result.train_loss = log_.epoch_loss();
    result.input_wait_fraction = input_wait_fraction_.value_or(
        StepTotals::ratio(run_.input.counters().wait_seconds, all.seconds));
    // Waiting is measured on another thread than the steps and may exceed their time by a little.
    result.communication_exposed_fraction =
        std::min(1.0, StepTotals::ratio(worker_times_.exposed_seconds(), all.seconds));
    result.stage_idle_fractions = stage_idle_fractions_;
    result.weights_hash = weights_hash(run_.strategy.snapshot().values);
    return result;
  }

  const TrainingRun& run_;
  const TrainLoopOptions& options_;
  Progress progress_;
  EvaluationRules rules_;
  std::int64_t num_bad_ = 0;     // bad samples of this epoch
  std::int64_t most_bad_ = 0;    // of the epochs so far
  std::int64_t saved_step_ = 0;  // step of the last checkpoint; 0: none
  double learning_rate_ = 0.0;
  StepLog log_;
  const WorkerTimes worker_times_;
  ps::StopCounts stops_;            // requests to stop that reached this task
  ps::StopCounts stops_of_all_;     // requests that reached any task, as of the last step
  std::vector<StepDelays> delays_;  // one per replica
  std::optional<Evaluation> test_;  // the last evaluation
  std::optional<Evaluation> validation_;
  std::vector<double> stage_idle_fractions_;   // at the end of training
  std::optional<double> input_wait_fraction_;  // of the slowest task, at the end of training
};

}  // namespace

double epochs_at(const ps::DataPosition& position, std::int64_t dataset_size,
                 std::int64_t global_batch) {
  const BatchPlan plan = plan_from(position, dataset_size, global_batch);
  const ps::DataPosition now = plan.batch(0).position;
  // Skipped samples of earlier epochs are trained in whole batches, so only those are counted.
  std::int64_t passed_over = plan.batches_before(now.epoch) * global_batch;
  for (const ps::SampleRange& range : now.untrained) {
    if (range.epoch == now.epoch) passed_over += range.end - range.begin;
  }
  const std::int64_t trained_per_epoch = dataset_size / global_batch * global_batch;
  return static_cast<double>(now.epoch) +
         static_cast<double>(now.offset - passed_over) / static_cast<double>(trained_per_epoch);
}

std::int64_t remaining_steps(const TrainLoopOptions& options, const Progress& progress,
                             std::int64_t dataset_size, std::int64_t global_batch) {
  if (options.total_steps) return *options.total_steps - progress.at.step;
  return plan_from(progress.at.position, dataset_size, global_batch)
      .batches_before(options.total_epochs);
}

TrainOutcome train(const TrainingRun& run, const TrainLoopOptions& options, const Progress& start) {
  try {
    TrainOutcome outcome = TrainLoop(run, options, start).run();
    run.display.finish();
    return outcome;
  } catch (...) {
    run.display.finish();  // so that the error gets a line of its own
    throw;
  }
}

}  // namespace syncopate
