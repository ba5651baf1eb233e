#include "worker/train/assignment_runner.h"

#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "strategies/snapshot.h"
#include "worker/train/train_loop.h"

namespace syncopate {
AssignmentRunner::AssignmentRunner(const AsynchronousRun& run, const TrainLoopOptions& options,
                                   const Progress& start, Replica& replica)
    : run_(run),
      options_(options),
      start_(start),
      worker_(run.workers.at(static_cast<std::size_t>(replica.index))),
      replica_(replica),
      evaluator_(*replica.backend, run.graph, run.watched, run.evaluation) {}

AssignmentRunner::Done AssignmentRunner::carry_out(const Assignment& assignment,
                                                   const Snapshot& copy, const EvalMetrics& moment,
                                                   double learning_rate,
                                                   const std::function<bool()>& stop) {
  const JobStatus& status = assignment.status;
  EvaluationRules rules(options_.rules, assignment.rules);
  Done done{.progress = start_};
  done.progress.at = {status.step, status.samples, assignment.position, assignment.rules,
                      assignment.pushes};
  if (assignment.writes_checkpoint || assignment.is_final) {
    require_finite(assignment, copy, learning_rate);
  }
  // The coordinator asks for an evaluation of every final snapshot.
  const bool evaluates = assignment.evaluates && options_.evaluates();
  // A checkpoint contains what the rules have made of the evaluation of its step.
  const bool judges = evaluates && rules.any();
  if (assignment.writes_checkpoint && !judges) save(copy, rules.best_step(), done);
  const bool averages = evaluates && run_.evaluation.uses_average;
  const Snapshot evaluated{averages ? average_of(copy.slots) : copy.values, {}, copy.state};
  if (evaluates) done.test = evaluate_or_defer(assignment, evaluated, moment, stop);
  if (done.test) {
    for (const std::string& note : rules.judge(status.step, *done.test)) {
      worker_.display.note(note);
    }
    done.progress.at.rules = rules.state();
  }
  if (assignment.writes_checkpoint && judges) save(copy, rules.best_step(), done);
  if (done.test && assignment.is_final && run_.final_test != nullptr) {
    done.validation = done.test;
    const Span span(replica_.trace, TraceKind::kEvaluation, status.step);
    SnapshotEvaluator test(*replica_.backend, run_.graph, *run_.final_test, run_.evaluation);
    done.test = test.run(evaluated, stop, show_progress(worker_.display, "testing"));
  }
  done.ends_training = rules.ends_training();
  if (rules.best_step() > 0) {
    done.best = checkpoint_path(options_.checkpoint_dir, rules.best_step());
  }
  return done;
}

void AssignmentRunner::save(const Snapshot& copy, std::int64_t best, Done& done) {
  // Without this check the job would count a checkpoint that was never written.
  check(!options_.checkpoint_dir.empty(), "a worker that writes checkpoints has a folder");
  const Span span(replica_.trace, TraceKind::kCheckpoint, done.progress.at.step);
  const auto path = checkpoint_path(options_.checkpoint_dir, done.progress.at.step);
  if (options_.checkpoint_lock != nullptr) options_.checkpoint_lock->renew();
  save_checkpoint(path, run_.graph, copy, run_.optimizer, done.progress);
  prune_checkpoints(options_.checkpoint_dir, options_.keep_checkpoints, best);
  done.checkpoint = path;
}

std::optional<Evaluation> AssignmentRunner::evaluate_or_defer(const Assignment& assignment,
                                                              const Snapshot& copy,
                                                              const EvalMetrics& moment,
                                                              const std::function<bool()>& stop) {
  if (worker_.deferred != nullptr && !assignment.is_final && defer(moment, copy)) {
    return std::nullopt;
  }
  if (worker_.deferred != nullptr && assignment.is_final) {
    worker_.deferred->take_over();
    evaluate_deferred(stop);
  }
  return evaluate(moment, copy, stop);
}

bool AssignmentRunner::defer(const EvalMetrics& moment, const Snapshot& copy) {
  try {
    worker_.deferred->add(moment, copy);
    return true;
  } catch (const FileError& error) {
    // Evaluates the snapshot during training, since it cannot be stored for the end.
    if (!std::exchange(has_warned_, true)) {
      log(LogLevel::kWarning,
          std::string(error.what()) + "; evaluations are made during training instead");
    }
    return false;
  }
}

void AssignmentRunner::end(bool is_stopped, const std::function<bool()>& stop) {
  if (worker_.deferred == nullptr || worker_.deferred->size() == 0) return;
  if (!is_stopped) evaluate_deferred(stop);
  if (worker_.deferred->size() > 0) worker_.display.note(worker_.deferred->describe_rest());
}

void AssignmentRunner::evaluate_deferred(const std::function<bool()>& stop) {
  worker_.deferred->evaluate([&](const EvalMetrics& moment, const Snapshot& copy) {
    return evaluate(moment, copy, stop).has_value();
  });
}

std::optional<Evaluation> AssignmentRunner::evaluate(const EvalMetrics& moment,
                                                     const Snapshot& copy,
                                                     const std::function<bool()>& stop) {
  const Span span(replica_.trace, TraceKind::kEvaluation, moment.step);
  const std::optional<Evaluation> test =
      evaluator_.run(copy, stop, show_progress(worker_.display, "evaluating"));
  if (!test) return std::nullopt;
  EvalMetrics line = moment;
  line.result = *test;
  line.on_validation = run_.final_test != nullptr;
  worker_.metrics.write(line);
  worker_.display.note(describe(line));
  return test;
}

void AssignmentRunner::require_finite(const Assignment& assignment, const Snapshot& copy,
                                      double learning_rate) const {
  if (all_finite(copy)) return;
  throw diverged("the weights or the optimizer's slots are no longer finite",
                 {.step = assignment.status.step,
                  .learning_rate = learning_rate,
                  .last_checkpoint = last_checkpoint(options_)});
}

std::optional<std::filesystem::path> last_checkpoint(const TrainLoopOptions& options) {
  if (options.checkpoint_dir.empty()) return std::nullopt;
  return newest_checkpoint(options.checkpoint_dir);
}

}  // namespace syncopate
