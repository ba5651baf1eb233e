// Carries out the assignments of an asynchronous job. An assignment gives a snapshot of the
// variables to a worker, which writes it to a checkpoint, evaluates it, or defers the evaluation.
// Used by asynchronous_loop.cc.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "worker/train/asynchronous_loop.h"
#include "worker/train/evaluate.h"

namespace syncopate {

// Carries out the job's assignments (snapshots to evaluate or to write to a checkpoint) on the
// thread of one replica. All arguments must outlive the object.
class AssignmentRunner {
 public:
  AssignmentRunner(const AsynchronousRun& run, const TrainLoopOptions& options,
                   const Progress& start, Replica& replica);

  struct Done {
    Progress progress;           // progress of the job at the snapshot
    bool ends_training = false;  // an evaluation rule ended training
    std::optional<std::filesystem::path> checkpoint;
    std::optional<std::filesystem::path> best;  // checkpoint of the best evaluation
    // The evaluation on the split that is evaluated during training (DataSplits::watched()), or on
    // the test split for the final snapshot; nullopt if `stop` returned true or no evaluation is
    // due.
    std::optional<Evaluation> test;
    // For the final snapshot: the evaluation on the validation split, if there is one.
    std::optional<Evaluation> validation;
  };
  // Evaluates the snapshot `copy` or writes it to a checkpoint, as the assignment requires. moment:
  // step and time of the snapshot. learning_rate: the last learning rate, for an error message.
  // Throws DivergenceError instead of writing a checkpoint with values that are not finite; throws
  // FileError.
  Done carry_out(const Assignment& assignment, const Snapshot& copy, const EvalMetrics& moment,
                 double learning_rate, const std::function<bool()>& stop);
  // If the job was not stopped, evaluates the deferred snapshots of this worker. Called when
  // training has ended, by the workers that do not make the final evaluation. Throws FileError.
  void end(bool is_stopped, const std::function<bool()>& stop);

 private:
  void require_finite(const Assignment& assignment, const Snapshot& copy,
                      double learning_rate) const;
  // Writes a checkpoint of the snapshot. best: step of the best evaluation.
  void save(const Snapshot& copy, std::int64_t best, Done& done);
  // Evaluates the snapshot. Returns nullopt if `stop` returned true.
  std::optional<Evaluation> evaluate(const EvalMetrics& moment, const Snapshot& copy,
                                     const std::function<bool()>& stop);
  // Evaluates the snapshot of an assignment now or defers its evaluation. Returns nullopt if the
  // evaluation is deferred or `stop` returned true.
  std::optional<Evaluation> evaluate_or_defer(const Assignment& assignment, const Snapshot& copy,
                                              const EvalMetrics& moment,
                                              const std::function<bool()>& stop);
  // Stores the snapshot for an evaluation after training. Returns false if the snapshot cannot be
  // stored.
  bool defer(const EvalMetrics& moment, const Snapshot& copy);
  void evaluate_deferred(const std::function<bool()>& stop);

  const AsynchronousRun& run_;
  const TrainLoopOptions& options_;
  const Progress& start_;
  const AsynchronousWorker& worker_;
  Replica& replica_;
  SnapshotEvaluator evaluator_;
  bool has_warned_ = false;
};

// Returns the newest checkpoint in --checkpoint-dir, for the error message after a divergence. Any
// worker may have written this checkpoint.
std::optional<std::filesystem::path> last_checkpoint(const TrainLoopOptions& options);

}  // namespace syncopate
