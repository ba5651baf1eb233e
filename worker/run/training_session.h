// The objects of a training run. For a job that leases batches to its workers, also the functions
// that describe the job, train the workers of this task, and repeat training after servers went
// back to a snapshot.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "ps/client/client_errors.h"
#include "strategies/strategy.h"
#include "worker/input/batches/leased_batch_source.h"
#include "worker/input/dataset.h"
#include "worker/run/process_end.h"
#include "worker/run/run_start.h"
#include "worker/run/train_options.h"
#include "worker/train/asynchronous_loop.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// The objects of a run, in the order of their construction. They outlive the report of a failure,
// because destroying the readers of a slow disk may take long.
struct TrainingSession {
  DataSplits data;
  std::optional<Graph> graph;
  std::unique_ptr<Strategy> strategy;
  std::optional<PeerWatch::Waker> waker;
  std::unique_ptr<MetricsWriter> metrics;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<BatchSource> input;
  std::map<std::int64_t, std::vector<double>> rules_by_step;  // TrainingRun::rules_by_step
  bool begins_again = false;  // true: the input readers end for a roll-back, not with the task
  std::vector<std::unique_ptr<LeasedBatchSource>> leased_inputs;  // one per replica of this task
  std::vector<std::unique_ptr<DeferredEvaluations>>
      deferred_evaluations;  // one per replica of this task; empty without --eval-when end

  // Adds the rules of its step to a position that the servers went back to. Servers know the rules
  // only where evaluations are assigned to workers.
  void roll_back_rules(ps::RunPosition& at);
};

// Fills `strategy` with what the coordinator of the job must know of this run.
void describe_job(const TrainOptions& options, const Graph& graph, const DataSplits& data,
                  std::int64_t batch_size, StrategyOptions& strategy);

// Opens the trace of this task; null without --trace. Throws FileError.
std::unique_ptr<Trace> open_trace(const TrainOptions& options);
// Lets the replicas of this task record their spans. trace: null: they record none.
void trace_replicas(Strategy& strategy, Trace* trace);

// Returns what describe_input_bound() must know of one of `sources` sources of this task.
InputMeans input_means(const TrainOptions& options, int sources);

EvaluationOptions evaluation_options(const TrainOptions& options);

// Returns the loop's options; --max-seconds is reduced by the training before a roll-back.
TrainLoopOptions loop_options(const TrainOptions& options, const RunStart& start);

// Trains the batches that the job leases to this task.
TrainOutcome train_leased(const TrainOptions& options, const Schedule& schedule,
                          TrainingSession& session, const RunStart& start, const StopPoll& stop);

// Calls the function `work`, which trains from `start`. After each roll-back of the servers it sets
// `start` to the earlier step and calls `work` again.
template <typename Work>
void train_over_roll_backs(TrainingSession& session, RunStart& start, ProgressDisplay& display,
                           const Work& work) {
  for (std::optional<ps::RunPosition> earlier;;) {
    const auto begun = std::chrono::steady_clock::now();
    try {
      if (earlier) {
        session.begins_again = true;
        session.leased_inputs.clear();
        session.begins_again = false;
        session.input.reset();
        start.progress.at = *earlier;
        session.roll_back_rules(start.progress.at);
        session.strategy->begin(*earlier);
      }
      return work();
    } catch (const ps::RolledBack& back) {
      display.note(std::string(back.what()) + "; training goes on from there");
      earlier = back.start();
      start.seconds_spent +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    }
  }
}

}  // namespace syncopate
