// The objects of a training run and the functions that connect them. For a job that leases batches
// to its workers, the functions describe the job, train the workers of this task, and repeat
// training after the servers went back to a snapshot.
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

// The objects of a run, in the order of their construction. A failure is reported before these
// objects are destroyed, because it may take long to destroy readers that wait for a slow disk.
struct TrainingSession {
  DataSplits data;
  std::optional<Graph> graph;
  std::unique_ptr<Strategy> strategy;
  std::optional<PeerWatch::Waker> waker;
  std::unique_ptr<MetricsWriter> metrics;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<BatchSource> input;
  std::map<std::int64_t, std::vector<double>> rules_by_step;  // see TrainingRun::rules_by_step
  bool begins_again = false;  // true while the input readers are destroyed because of a roll-back
  std::vector<std::unique_ptr<LeasedBatchSource>> leased_inputs;  // one per replica of this task
  std::vector<std::unique_ptr<DeferredEvaluations>>
      deferred_evaluations;  // one per replica of this task; empty without --eval-when end

  // Restores the state of the evaluation rules after the servers went back to the position `at`:
  // stores in `at.rules` the state that the rules had at this position. Does nothing if the servers
  // assign evaluations to workers, because `at` then has the rules already.
  void roll_back_rules(ps::RunPosition& at);
};

// Stores in `strategy` the properties of this run that the coordinator of the job needs.
void describe_job(const TrainOptions& options, const Graph& graph, const DataSplits& data,
                  std::int64_t batch_size, StrategyOptions& strategy);

// Opens the trace of this task; null without --trace. Throws FileError.
std::unique_ptr<Trace> open_trace(const TrainOptions& options);
// Makes the replicas of this task record their spans in `trace`; null: they record none.
void trace_replicas(Strategy& strategy, Trace* trace);

// Returns the properties of the input of one batch source, for describe_input_bound(). sources: the
// number of batch sources that share the CPUs of this task.
InputMeans input_means(const TrainOptions& options, int sources);

EvaluationOptions evaluation_options(const TrainOptions& options);

// Returns the options of the training loop. After the servers rolled back to a snapshot,
// max_seconds is --max-seconds minus the time that this process has already trained.
TrainLoopOptions loop_options(const TrainOptions& options, const RunStart& start);

// Trains on the batches that the job leases to this task.
TrainOutcome train_leased(const TrainOptions& options, const Schedule& schedule,
                          TrainingSession& session, const RunStart& start, const StopPoll& stop);

// Calls the function `work`, which trains from `start`. Each time the servers roll back to a
// snapshot, sets `start` to the position of the snapshot, calls Strategy::begin() and then calls
// `work` again.
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
