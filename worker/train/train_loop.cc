#include "worker/train/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "worker/checkpoint/checkpoint.h"
#include "worker/input/batches/batch_plan.h"
#include "worker/input/batches/uneven_round.h"
#include "worker/train/bad_sample_count.h"
#include "worker/train/due.h"
#include "worker/train/job_metrics.h"
#include "worker/train/metrics.h"
#include "worker/train/step_log.h"
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

// A place between two steps of a run.
struct Place {
  std::int64_t step = 0;   // steps before this place
  std::int64_t epoch = 0;  // epoch of the next step
};

class TrainLoop {
 public:
  TrainLoop(const TrainingRun& run, const TrainLoopOptions& options, const Progress& start)
      : run_(run),
        options_(options),
        progress_(start),
        rules_(options.rules, start.at.rules),
        bad_samples_(run.bad_samples, synchronous_job(run.strategy)),
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
                                      .normalize = progress_.normalize,
                                      .local_updates = run_.local_updates});
    }
    // The checkpoint of a run that was stopped in an evaluation lacks what the evaluation causes.
    if (rules_.any() && !finished() && progress_.at.step > rules_.judged_step() &&
        evaluation_due(last_round_begin()) && !evaluate()) {
      return stopped(run_.evaluator.stopped_by());
    }
    while (!finished()) {
      const Place before = place();
      train_round();
      // All that follows makes tasks wait for one another or needs sums over all replicas, so what
      // became due in the round is done after it.
      if (place().epoch != before.epoch || finished()) log_.end_epoch();
      if (has_passed(options_.log_every_steps, before.step, progress_.at.step) || finished()) {
        log_.write_line(progress_, epochs(), learning_rate_);
      }
      const auto signal = asked_to_stop();
      const bool is_checkpoint_due = finished() || checkpoint_due(before);
      // A checkpoint contains what the rules have made of the evaluation of its step.
      const bool judges = rules_.any() && (finished() || evaluation_due(before));
      if (signal || (is_checkpoint_due && !judges)) save();
      if (signal) return stopped(*signal);
      if ((judges || (!finished() && evaluation_due(before))) && !evaluate()) {
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
      const WorkerTimes::OfJob times =
          worker_times_.write({.steps = all.steps,
                               .samples = all.samples,
                               .seconds = all.seconds,
                               .input_wait_seconds = run_.input.counters().wait_seconds},
                              run_.metrics);
      input_wait_fraction_ = times.longest_input_wait;
      if (times.bytes_sent) {
        bytes_per_sample_ = StepTotals::ratio(static_cast<double>(*times.bytes_sent),
                                              static_cast<double>(all.samples));
      }
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
  Place place() const { return {.step = progress_.at.step, .epoch = position().epoch}; }
  // Returns a place at or before the begin of the round that ended at the position of a resume. An
  // evaluation that became due before this place has been made.
  Place last_round_begin() const {
    const std::int64_t step =
        std::max(rules_.judged_step(),
                 progress_.at.step - synchronous_job(run_.strategy).steps_left_in_round());
    const ps::DataPosition now = position();
    const std::int64_t of_epoch = now.untrained.empty() ? now.offset / run_.global_batch : 0;
    const std::int64_t of_earlier =
        std::max<std::int64_t>(now.untrained.empty() ? progress_.at.step - step - of_epoch : 0, 0);
    const std::int64_t per_epoch = run_.dataset_size / run_.global_batch;
    return {.step = step, .epoch = now.epoch - (of_earlier + per_epoch - 1) / per_epoch};
  }
  static bool is_epoch_start(const ps::DataPosition& at) {
    return at.offset == 0 && at.untrained.empty();
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
  // Return whether a checkpoint or an evaluation became due between `before` and now.
  bool checkpoint_due(const Place& before) const {
    if (options_.checkpoint_every_steps == 0) return place().epoch != before.epoch;
    return has_passed(options_.checkpoint_every_steps, before.step, progress_.at.step);
  }
  bool evaluation_due(const Place& before) const {
    if (options_.eval_every_steps > 0) {
      return has_passed(options_.eval_every_steps, before.step, progress_.at.step);
    }
    return has_passed(options_.eval_every_epochs, before.epoch, place().epoch);
  }

  // Runs the steps of a round. Takes the sums over all replicas when the round has ended.
  void train_round() {
    const Progress begin = progress_;
    const ps::DataPosition begun_at = position();
    const std::int64_t length =
        std::min(synchronous_job(run_.strategy).steps_left_in_round(), remaining_steps());
    StepReport report;
    do {
      const ps::DataPosition now = position();
      if (is_epoch_start(now)) log_.begin_epoch();
      report = train_one();
      if (report.round_steps > 0) {
        stops_of_all_ = report.stops;
        progress_.at.samples += report.scores.num_samples;
        log_.end_round(report);
        join_steps(begin, length);
        if (begun_at.untrained.empty()) {  // else of earlier epochs
          bad_samples_.end_round(begun_at.epoch, last_epoch(), report.scores.num_bad);
        }
      } else {
        bad_samples_.add_own(now.epoch, report.scores.num_bad);
      }
      log_.show(progress_.at.step, report);
    } while (report.round_steps == 0);
  }

  // Moves to the place of the replica with the most steps in the round, if tasks that were asked to
  // stop have ended the round early. begin: of the round. length: its steps without a request.
  void join_steps(const Progress& begin, std::int64_t length) {
    const std::span<const std::int64_t> steps = synchronous_job(run_.strategy).steps_of_round();
    if (steps.empty()) return;
    ++progress_.rounds;
    if (!stops_of_all_.early_stop()) return;
    const auto [least, most] = std::ranges::minmax(steps);
    if (least == length) {
      run_.display.note(
          "the round is complete, so a resumed run computes the same bits as an undisturbed one");
      return;
    }
    run_.display.note(fmt::format(
        "the round ended after {} of {} steps: a resumed run trains the samples that are left, "
        "but computes other bits than an undisturbed one",
        least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most), length));
    if (least == most) return;
    progress_.at.step = begin.at.step + most;
    progress_.at.position =
        position_after_round(run_.dataset_size, run_.global_batch, begin.at.position, steps);
  }

  // Returns the epoch of the step that ended here.
  std::int64_t last_epoch() const {
    const ps::DataPosition now = position();
    return is_epoch_start(now) ? now.epoch - 1 : now.epoch;
  }

  // Whether this task was asked to stop, and would take too long to finish its round.
  bool ends_round() const {
    constexpr double kMostSeconds = 10.0;
    if (!stops_.early_stop()) return false;
    const std::int64_t left = synchronous_job(run_.strategy).steps_left_in_round();
    return static_cast<double>(left) * log_.seconds_per_step() > kMostSeconds;
  }

  // Runs a step. Counts the step, but not what the report has sums of.
  StepReport train_one() {
    const double passes = epochs();
    learning_rate_ = run_.schedule.learning_rate(passes) * rules_.learning_rate_factor();
    if (const auto signal = run_.stop()) note_stop(*signal);
    if (is_time_up()) stops_[ps::StopKind::kComplete] = 1;
    const bool is_last = remaining_steps() == 1;
    const auto begun = Clock::now();
    const StepReport report = train_step(run_.strategy, run_.input,
                                         {.learning_rate = static_cast<float>(learning_rate_),
                                          .step = progress_.at.step + 1,
                                          .epochs = passes,
                                          .is_last = is_last,
                                          .ends_round = ends_round()},
                                         stops_, delays_);
    log_.add_seconds(seconds_since(begun));
    ++progress_.at.step;
    if (run_.membership != nullptr) run_.membership->report_step(progress_.at.step);
    if (!std::isfinite(report.scores.loss)) {
      throw diverged_here(describe_divergence(report.scores.loss));
    }
    progress_.at.position = run_.input.position();
    check(report.round_steps > 0 || !is_last, "the last step of a run ends a round");
    return report;
  }

  // Whether the time of this task is up. All tasks end after the round that one task reports it in.
  bool is_time_up() const {
    return options_.max_seconds > 0.0 && log_.all().seconds >= options_.max_seconds;
  }

  void note_stop(std::string_view signal) { stops_[ps::stop_kind(signal)] = 1; }

  // Returns the request to stop that some task reported in the last round.
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
    const Snapshot now = run_.strategy.snapshot_to_save();
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
    result.num_bad_in_epoch = bad_samples_.most_in_epoch();
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
    result.bytes_per_sample = bytes_per_sample_;
    result.exchange_seconds = worker_times_.exchange_seconds();
    result.weights_hash = weights_hash(run_.strategy.snapshot().values);
    return result;
  }

  const TrainingRun& run_;
  const TrainLoopOptions& options_;
  Progress progress_;
  EvaluationRules rules_;
  BadSampleCount bad_samples_;
  std::int64_t saved_step_ = 0;  // step of the last checkpoint; 0: none
  double learning_rate_ = 0.0;
  StepLog log_;
  const WorkerTimes worker_times_;
  ps::StopCounts stops_;            // requests to stop that reached this task
  ps::StopCounts stops_of_all_;     // requests that reached any task, as of the last round
  std::vector<StepDelays> delays_;  // one per replica
  std::optional<Evaluation> test_;  // the last evaluation
  std::optional<Evaluation> validation_;
  std::vector<double> stage_idle_fractions_;   // at the end of training
  std::optional<double> input_wait_fraction_;  // of the slowest task, at the end of training
  std::optional<double> bytes_per_sample_;     // of all tasks, at the end of training
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
