// A training run whose replicas keep step with nobody: each trains the batches that it is given,
// and whoever is appointed evaluates a copy of the variables or writes it to a checkpoint while the
// others go on, or keeps the copy and evaluates it when training has ended. Called by `syncopate
// train` under a strategy that has an AsynchronousJob; its counterpart for replicas in step is
// train_loop.h. Which batches, and in which order updates are applied, depends on timing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "models/optim/schedule.h"
#include "strategies/strategy.h"
#include "worker/input/leased_batch_source.h"
#include "worker/train/deferred_evaluations.h"
#include "worker/train/evaluate.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// What a replica's thread has for itself.
struct AsynchronousWorker {
  LeasedBatchSource& input;  // of its job's leases
  MetricsWriter& metrics;    // make_late_metrics_writer: workers take turns
  ProgressDisplay& display;
  DeferredEvaluations* kept = nullptr;  // null: it evaluates when that is due
};

// What the loop works with. Everything outlives it. Strategy::begin() has been called.
struct AsynchronousRun {
  const Graph& graph;
  Strategy& strategy;                       // every replica has an asynchronous_job()
  std::vector<AsynchronousWorker> workers;  // by local replica
  std::int64_t dataset_size;
  std::int64_t batch_size;  // samples of a lease
  const Dataset& test;
  EvaluationOptions evaluation;
  const Schedule& schedule;
  std::string optimizer;  // its name, for checkpoints
  StopPoll stop;
};

// Trains until the job is over, or was stopped because `run.stop` spoke on some task. `start`: from
// where this task's job went on; of `options` the job decides what is due when, this task's folder
// and log interval count.
//
// The outcome is the job's on the task that was appointed to the last cut: it has `test`, unless it
// was stopped, or `checkpoint`, and is to report for all. Elsewhere: progress and rates as last
// heard of, neither position, test nor hash; stopped when this task was asked to.
// samples_per_second counts what the job trained while this task took part, from its first step to
// the end. train_loss is the mean over what the job trained since this task began its last epoch.
//
// Throws DivergenceError, naming the step as far as it is known here; FileError when a checkpoint
// cannot be written; PeerError.
TrainOutcome train_asynchronously(const AsynchronousRun& run, const TrainLoopOptions& options,
                                  const Progress& start);

}  // namespace syncopate
