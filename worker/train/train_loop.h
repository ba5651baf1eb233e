// A training run, the same on every task of the job: steps until the epochs are done, and between
// them metrics, evaluations, checkpoints and a look at whether somebody asked us to stop. Called by
// `syncopate train`, which made everything it works with; one step is in train_step.h. Whatever all
// tasks must decide alike, to stop, to go on, is decided from what travels with the gradients.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "models/graph/graph.h"
#include "models/optim/schedule.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/input/batch_source.h"
#include "worker/train/evaluate.h"
#include "worker/train/metrics.h"
#include "worker/train/progress.h"
#include "worker/train/service_time.h"

namespace syncopate {

// Where replicas keep step, all of them evaluate and training's clock stands still: then there is
// no difference.
enum class EvalWhen : std::uint8_t {
  kDue,  // at once, by one worker that does not train meanwhile
  kEnd,  // of copies that were kept, when training has ended
};

struct TrainLoopOptions {
  std::int64_t total_epochs = 3;
  std::optional<std::int64_t> total_steps;  // given: decides instead of total_epochs
  double max_seconds = 0.0;                 // of training, after which it is complete; 0: no limit
  std::int64_t eval_every_epochs = 1;       // 0: at the end only
  std::int64_t eval_every_steps = 0;        // 0: eval_every_epochs decides
  EvalWhen eval_when = EvalWhen::kDue;
  // For copies that are to be evaluated, where there is no checkpoint_dir.
  std::filesystem::path temporary_dir = "/tmp";
  std::int64_t log_every_steps = 50;
  std::filesystem::path checkpoint_dir;     // empty: no checkpoints
  std::int64_t checkpoint_every_steps = 0;  // 0: at the end of each epoch
  int keep_checkpoints = 3;
  ServiceTimeOptions service_time;
  int first_worker = 0;  // number of this task's first replica among all
};

// What the loop works with. Everything outlives it; `input` stands at the start's position.
struct TrainingRun {
  const Graph& graph;
  Strategy& strategy;
  BatchSource& input;
  std::int64_t dataset_size;
  std::int64_t global_batch;
  const Schedule& schedule;
  std::string optimizer;  // its name, for checkpoints
  Evaluator& evaluator;
  MetricsWriter& metrics;
  ProgressDisplay& display;
  StopPoll stop;
  // Null: this task is alone. Hears how far it is.
  Membership* membership = nullptr;
};

struct TrainOutcome {
  Progress progress;                                // where it ended
  std::optional<std::string> stopped_by;            // a signal's name
  std::optional<std::filesystem::path> checkpoint;  // of exactly this progress
  std::optional<Evaluation> test;                   // of the final weights; none when stopped
  double seconds = 0.0;  // in steps; evaluation, checkpoints and earlier processes excluded
                         // (worker/train/asynchronous_loop.h: since the first step, all included)
  double samples_per_second = 0.0;
  double train_loss =
      0.0;  // mean over the last epoch, or what this process trained of it; NaN if nothing
  double input_wait_fraction = 0.0;
  double communication_exposed_fraction = 0.0;  // of `seconds`
  std::string weights_hash;                     // FNV-1a of all values, hexadecimal
  // Where replicas do not keep step (worker/train/asynchronous_loop.h); else nothing.
  std::vector<WorkerStaleness> staleness;
  // Stopped, and another worker has written the checkpoint.
  bool saved_by_another = false;
};

// How many passes over the data a position stands for, what was passed over not counted: the clock
// of the schedule.
double epochs_at(const ps::DataPosition& position, std::int64_t dataset_size,
                 std::int64_t global_batch);

// Batches from there to the end of the run; 0 or less when there is nothing left.
std::int64_t remaining_steps(const TrainLoopOptions& options, const Progress& progress,
                             std::int64_t dataset_size, std::int64_t global_batch);

// Trains from `start` to the end, or until `run.stop` speaks on some task. A run that is already
// complete only evaluates. Throws DivergenceError when loss, weights or slots are no longer finite,
// naming the step; checkpoints of before stay as they are. Throws FileError when a checkpoint
// cannot be written.
TrainOutcome train(const TrainingRun& run, const TrainLoopOptions& options, const Progress& start);

// Training that cannot go on because numbers are no longer finite: how it is noticed, and what is
// said of it.

bool all_finite(const Snapshot& snapshot);

struct DivergencePlace {
  std::int64_t step = 0;
  double learning_rate = 0.0;
  std::optional<std::filesystem::path> last_checkpoint;  // from before
};

// Of a loss that is not finite: "the loss is not a number".
std::string describe_divergence(double loss);
// what: "the loss is infinite".
DivergenceError diverged(const std::string& what, const DivergencePlace& place);

}  // namespace syncopate
