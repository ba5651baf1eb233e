// The training loop of an asynchronous job. Each replica trains the batches that the job leases to
// it. The job may assign a snapshot of the variables to a replica. This replica evaluates the
// snapshot or writes it to a checkpoint while the other replicas train on, or stores it for an
// evaluation after training. `syncopate train` calls the loop under a strategy that has an
// AsynchronousJob; train_loop.h has the loop of synchronous replicas. Which batches a replica
// trains and the order of updates depend on timing.
#pragma once

#include <cstdint>
#include <optional>
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
  LeasedBatchSource& input;  // reads the batches that the job leases to the replica
  MetricsWriter& metrics;  // from make_late_metrics_writer(), because one worker at a time reports
  ProgressDisplay& display;
  DeferredEvaluations* deferred = nullptr;  // null: evaluations are made as soon as they are due
};

// The objects that the loop uses; all must outlive it. The caller must have called
// Strategy::begin().
struct AsynchronousRun {
  const Graph& graph;
  Strategy& strategy;                       // the strategy; each replica has an asynchronous_job()
  std::vector<AsynchronousWorker> workers;  // one worker per local replica
  std::int64_t dataset_size;
  std::int64_t batch_size;          // samples of each leased batch
  std::int64_t samples_per_update;  // of one or several batches
  const Dataset& watched;           // the split that evaluations read: DataSplits::watched()
  EvaluationOptions evaluation;
  const Schedule& schedule;
  std::string optimizer;  // name of the optimizer, for checkpoints
  StopPoll stop;
  const Dataset* final_test = nullptr;                   // see TrainingRun
  const BadSamples* bad_samples = nullptr;               // see TrainingRun
  InputMeans input_means{};                              // the input of one worker
  std::optional<LocalUpdateOptions> local_updates = {};  // see BeginMetrics
};

// Trains until the job has ended, or until `run.stop` returns a request to stop on some task of the
// job. `start`: the progress at which this task begins. The job, and not `options`, decides when
// evaluations and checkpoints are due.
//
// The job assigns its last snapshot to one task (has_last_snapshot). The outcome of this task
// describes the whole job and has `test`, or `checkpoint` if the job was stopped. The outcome of
// any other task has the last progress and rates that the task received, but no position, no `test`
// and no weights_hash; `stopped_by` is set only if this other task was asked to stop.
// samples_per_second counts the samples that the job trained from the first step of this task to
// the end. train_loss is the mean over the steps of the job since this task began its last epoch.
//
// Throws DivergenceError with the last step that this task knows. Throws FileError if a checkpoint
// cannot be written. Throws PeerError.
TrainOutcome train_asynchronously(const AsynchronousRun& run, const TrainLoopOptions& options,
                                  const Progress& start);

}  // namespace syncopate
