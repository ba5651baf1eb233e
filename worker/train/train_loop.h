// The training loop of synchronous replicas, which every task runs. The loop runs rounds of steps
// until the run is complete; with most strategies, a round is one step. Between rounds it writes
// metrics, evaluates and writes checkpoints; between steps it polls for requests to stop, which
// take effect at the end of the round. Called by `syncopate train`; train_step.h has a single step.
// Decisions that must be the same on all tasks, such as to stop, follow from values that are
// exchanged with the gradients.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/base/enum_names.h"
#include "models/base/errors.h"
#include "models/graph/graph.h"
#include "models/optim/schedule.h"
#include "strategies/asynchronous_job.h"
#include "strategies/snapshot.h"
#include "strategies/strategy.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/folder_lock.h"
#include "worker/input/batches/batch_source.h"
#include "worker/train/evaluate.h"
#include "worker/train/evaluation_rules.h"
#include "worker/train/input_bound.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"
#include "worker/train/service_time.h"

namespace syncopate {

// When the evaluations of a run are made. The choice has no effect on synchronous replicas, because
// they evaluate together and their training time excludes evaluations.
enum class EvalWhen : std::uint8_t {
  kDue,  // when they are due; the worker that evaluates pauses its training
  kEnd,  // after training has ended, on snapshots that were stored when evaluations were due
};
constexpr auto named_values(EvalWhen /*type*/) {
  return std::array{Named{"due", EvalWhen::kDue}, Named{"end", EvalWhen::kEnd}};
}

struct TrainLoopOptions {
  std::int64_t total_epochs = 3;
  std::optional<std::int64_t> total_steps;  // if given, it replaces total_epochs
  double max_seconds = 0.0;  // seconds of training after which the run is complete; 0: no limit
  std::int64_t eval_every_epochs = 1;
  // Steps between evaluations; 0: eval_every_epochs is used. If both are 0, the run never
  // evaluates.
  std::int64_t eval_every_steps = 0;
  EvalWhen eval_when = EvalWhen::kDue;
  EvaluationRuleOptions rules;
  // The folder for the deferred evaluations of a run without checkpoint_dir.
  std::filesystem::path temporary_dir = "/tmp";
  std::int64_t log_every_steps = 50;
  std::filesystem::path checkpoint_dir;     // empty: no checkpoints are written
  FolderLock* checkpoint_lock = nullptr;    // renewed before each checkpoint; null: no lock is held
  std::int64_t checkpoint_every_steps = 0;  // 0: a checkpoint is written at the end of each epoch
  int keep_checkpoints = 3;
  ServiceTimeOptions service_time;
  int first_worker = 0;  // global index of the first replica of this task

  bool evaluates() const noexcept { return eval_every_epochs > 0 || eval_every_steps > 0; }
};

// The objects that the training loop uses; all must outlive it. `input` must be at the position at
// which training starts.
struct TrainingRun {
  const Graph& graph;
  Strategy& strategy;
  BatchSource& input;
  std::int64_t dataset_size;
  std::int64_t global_batch;
  const Schedule& schedule;
  std::string optimizer;                    // name of the optimizer, for checkpoints
  const BadSamples* bad_samples = nullptr;  // Dataset::bad_samples() of the training split
  Evaluator& evaluator;                     // evaluates DataSplits::watched()
  MetricsWriter& metrics;
  ProgressDisplay& display;
  StopPoll stop;
  // The test split, if `evaluator` reads a validation split; null: `evaluator` reads the test
  // split.
  const Dataset* final_test = nullptr;
  // After each step, the loop reports the number of the step to this object. Null for a run of one
  // task.
  Membership* membership = nullptr;
  InputMeans input_means{};
  // The map in which the loop stores RunPosition::rules of each evaluated step, for a roll-back of
  // the servers. Null if there are no servers.
  std::map<std::int64_t, std::vector<double>>* rules_by_step = nullptr;
  // The settings of local updates; nullopt for a strategy without rounds.
  std::optional<LocalUpdateOptions> local_updates = {};
};

struct TrainOutcome {
  Progress progress;  // progress at the end of training
  // Name of the signal that stopped the run; nullopt if it was not stopped.
  std::optional<std::string> stopped_by;
  std::optional<std::filesystem::path> checkpoint;  // checkpoint of exactly this progress
  std::optional<std::filesystem::path> best;        // checkpoint of the best evaluation
  // Evaluation of the final weights on the test split; nullopt if the run was stopped or never
  // evaluates.
  std::optional<Evaluation> test;
  // Evaluation of the final weights on the validation split; nullopt if there is no such split, or
  // if `test` is nullopt.
  std::optional<Evaluation> validation;
  // The number of bad training samples that were replaced, in the epoch that had the most such
  // samples.
  std::int64_t num_bad_in_epoch = 0;
  // Whether an asynchronous job assigned its last snapshot to this task. This task then reports for
  // the job.
  bool has_last_snapshot = false;
  // The time that this process spent in steps, without evaluations and checkpoints. In an
  // asynchronous job, all time since the first step of this process.
  double seconds = 0.0;
  double samples_per_second = 0.0;
  // The mean loss over the steps of the last epoch, without the steps of this epoch that an earlier
  // process ran; NaN if this process ran no step.
  double train_loss = 0.0;
  double input_wait_fraction = 0.0;
  double communication_exposed_fraction = 0.0;  // exposed communication / `seconds`
  // Bytes that all tasks have sent per sample; nullopt if they are not counted.
  std::optional<double> bytes_per_sample;
  double exchange_seconds = 0.0;  // exposed communication without waiting for other replicas
  // For each pipeline stage: the fraction of `seconds` spent waiting for other stages.
  std::vector<double> stage_idle_fractions;
  std::string weights_hash;  // FNV-1a of all values, hexadecimal
  // The staleness of the pushes of each worker; empty for synchronous replicas.
  std::vector<WorkerStaleness> staleness;
  std::int64_t repeated_batches = 0;  // see Assignment::repeated_batches
  // Whether the job was stopped and another worker wrote the checkpoint.
  bool saved_by_another = false;
};

// Returns the number of passes over the data up to `position`, without samples that were skipped.
// It is the argument of the learning rate schedule.
double epochs_at(const ps::DataPosition& position, std::int64_t dataset_size,
                 std::int64_t global_batch);

// Returns the number of global batches that are left to train from `progress` to the end of the
// run; 0 or less if the run is complete.
std::int64_t remaining_steps(const TrainLoopOptions& options, const Progress& progress,
                             std::int64_t dataset_size, std::int64_t global_batch);

// Trains from `start` to the end, or until `run.stop` returns a signal on some task. A run that is
// already complete only evaluates. Throws DivergenceError naming the step if loss, weights or slots
// are no longer finite; earlier checkpoints are not changed. Throws FileError if a checkpoint
// cannot be written.
TrainOutcome train(const TrainingRun& run, const TrainLoopOptions& options, const Progress& start);

// Whether all values and slots are finite numbers.
bool all_finite(const Snapshot& snapshot);

struct DivergencePlace {
  std::int64_t step = 0;
  double learning_rate = 0.0;
  std::optional<std::filesystem::path> last_checkpoint;  // checkpoint of an earlier step
};

// Describes a loss that is not finite, such as "the loss is not a number".
std::string describe_divergence(double loss);
// Returns the error to throw after a divergence. what: what is not finite, such as "the loss is
// infinite".
DivergenceError diverged(const std::string& what, const DivergencePlace& place);

}  // namespace syncopate
