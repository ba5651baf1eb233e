// What a worker of an asynchronous job does with a copy of the variables that it was appointed to:
// writes a checkpoint, evaluates. Used by asynchronous_loop.cc.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "worker/train/asynchronous_loop.h"
#include "worker/train/evaluate.h"

namespace syncopate {

// One thread only: the replica's. All arguments must outlive it.
class AssignmentRunner {
 public:
  AssignmentRunner(const AsynchronousRun& run, const TrainLoopOptions& options,
                   const Progress& start, Replica& replica);

  struct Done {
    Progress progress;  // of the copy
    std::optional<std::filesystem::path> checkpoint;
    std::optional<Evaluation> test;  // none when `stop` said true
  };
  // The copy of the variables that the assignment is about. moment: what is known of it before it
  // is evaluated; learning_rate: the last one, for what is said. Throws DivergenceError before
  // anything is written that could not be gone on from; FileError.
  Done carry_out(const Assignment& assignment, const Snapshot& copy, const EvalMetrics& moment,
                 double learning_rate, const std::function<bool()>& stop);
  // Training has ended without this worker's having been appointed to the last copy: evaluates
  // those that it has kept, unless the job was stopped. Throws FileError.
  void end(bool is_stopped, const std::function<bool()>& stop);

 private:
  void require_finite(const Assignment& assignment, const Snapshot& copy,
                      double learning_rate) const;
  // Nothing when `stop` said true.
  std::optional<Evaluation> evaluate(const EvalMetrics& moment, const Snapshot& copy,
                                     const std::function<bool()>& stop);
  // False where there is no room for it.
  bool keeps(const EvalMetrics& moment, const Snapshot& copy);
  void evaluate_kept(const std::function<bool()>& stop);

  const AsynchronousRun& run_;
  const TrainLoopOptions& options_;
  const Progress& start_;
  const AsynchronousWorker& worker_;
  SnapshotEvaluator evaluator_;
  bool has_warned_ = false;
};

// The newest in the folder, whichever worker wrote it, for what is said of a divergence.
std::optional<std::filesystem::path> last_checkpoint(const TrainLoopOptions& options);

}  // namespace syncopate
