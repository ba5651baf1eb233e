// The training loop of an asynchronous job. Each replica trains the batches that the job leases to
// it. The job may assign a snapshot of the variables to a replica, which evaluates it or writes it
// to a checkpoint while the other replicas train on, or stores it for an evaluation after training.
// Called by `syncopate train` under a strategy that has an AsynchronousJob; train_loop.h is its
// counterpart for synchronous replicas. The batches of a replica and the order of updates depend on
// timing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "models/optim/schedule.h"
#include "strategies/strategy.h"
#include "worker/input/batches/leased_batch_source.h"
#include "worker/train/deferred_evaluations.h"
#include "worker/train/evaluate.h"
#include "worker/train/input_bound.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// The objects that one replica's thread uses alone.
struct AsynchronousWorker {
  LeasedBatchSource& input;  // reads the batches that the job leases
  MetricsWriter& metrics;    // from make_late_metrics_writer, because one worker at a time reports
  ProgressDisplay& display;
  DeferredEvaluations* deferred = nullptr;  // null: evaluations are made when they are due
};

// The objects that the loop works with; all must outlive it. The caller has called
// Strategy::begin().
struct AsynchronousRun {
  const Graph& graph;
  Strategy& strategy;                       // the strategy; each replica has an asynchronous_job()
  std::vector<AsynchronousWorker> workers;  // one worker per local replica
  std::int64_t dataset_size;
  std::int64_t batch_size;  // samples of each leased batch
  const Dataset& watched;   // the split that evaluations read: DataSplits::watched()
  EvaluationOptions evaluation;
  const Schedule& schedule;
  std::string optimizer;  // name of the optimizer, for checkpoints
  StopPoll stop;
  const Dataset* final_test = nullptr;      // as in TrainingRun
  const BadSamples* bad_samples = nullptr;  // as in TrainingRun
  InputMeans input_means{};                 // of one worker
};

// Trains until the job has ended, or until a request to stop reached a task through `run.stop`.
// `start` is the position at which the job of this task began. The job decides when evaluations and
// checkpoints are due; of `options` only this task's folder and log interval are used.
//
// On the task that got the last snapshot from the job (has_last_snapshot) the outcome describes the
// whole job and has `test`, or, when the job was stopped, `checkpoint`. On other
// tasks the outcome has the last progress and rates that the task received, without position, test
// and hash, and `stopped_by` when this task was asked to stop. samples_per_second counts the
// samples that the job trained from the first step of this task to the end. train_loss is the mean
// over what the job trained since this task began its last epoch.
//
// Throws DivergenceError with the last step that this task knows; FileError when a checkpoint
// cannot be written; PeerError.
TrainOutcome train_asynchronously(const AsynchronousRun& run, const TrainLoopOptions& options,
                                  const Progress& start);

}  // namespace syncopate
