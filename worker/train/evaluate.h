// Evaluates a network exactly: each sample of a data set counts once, also in a short last batch.
// Each replica evaluates whole batches, and the sums of the batches are added in batch order, so
// the result does not depend on the number of replicas. Called by the training loops and by
// `syncopate evaluate`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/backend.h"
#include "strategies/strategy.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"
#include "worker/train/confusion.h"
#include "worker/train/metric_value.h"
#include "worker/train/progress.h"

namespace syncopate {

// The largest number of classes for which every evaluation counts a confusion matrix. The number is
// limited because tasks exchange the counts of all pairs of classes.
inline constexpr std::int64_t kMostCountedClasses = 256;

// Returns the line "left out  2 bad test samples, first: a.png: ..."; empty if no sample is bad.
std::string describe_bad(std::string_view split, const Evaluation& evaluation);

// A function that is called between steps and between batches. If a signal that requests a stop has
// arrived, returns the name of the signal; otherwise nullopt.
using StopPoll = std::function<std::optional<std::string_view>()>;

// Returns the batch size of evaluations: `most`, or less if the values of all nodes for `most`
// samples would take more than 4 GiB.
std::int64_t evaluation_batch(const Graph& graph, std::int64_t most);

struct EvaluationOptions {
  // Samples per batch. `train` and `evaluate` use the same number, so that both add losses in the
  // same order. For networks with large maps the number is smaller, see evaluation_batch().
  std::int64_t batch_size = 128;
  int threads = 1;  // number of reader threads, unless this number is tuned
  Autotune autotune{};
  // True: a confusion matrix is counted even if there are more than kMostCountedClasses classes.
  bool counts_classes = false;
  // True: the moving average of the variables is evaluated. The running statistics of batch norm
  // are not averaged.
  bool uses_average = false;
};

// Evaluates one replica's part of the batches. One thread only.
class PartialEvaluator {
 public:
  // Compiles the network on the replica's own arena and state. This evaluator takes part `part`
  // (from 0) of the batches, which are divided among `parts` evaluators. All arguments must outlive
  // the evaluator. Throws what Backend::compile and make_batch_source throw.
  PartialEvaluator(Backend& backend, const Graph& graph, ParameterArena& arena, StateBlock& state,
                   const Dataset& dataset, const EvaluationOptions& options, int part = 0,
                   int parts = 1);

  std::int64_t batches_of_all() const noexcept { return batches_of_all_; }
  // Evaluates the batches of this evaluator's part. Stores in sums[b] the sums over the samples of
  // batch b; the losses are summed, not averaged. `sums` has batches_of_all() elements; elements
  // for batches of other parts are not changed. Ends early if `stop` returns true. on_progress:
  // called with the number of this part's batches that are done; may be empty. Throws what the data
  // set throws.
  void run(const std::function<bool()>& stop, std::span<Scores> sums,
           const OnProgress& on_progress = {});
  // Evaluates all batches of the data set. The object must have been made with parts = 1. Returns
  // nullopt if `stop` returned true; then this object cannot be used again. Throws what add_up()
  // throws.
  std::optional<Evaluation> run(const std::function<bool()>& stop = {},
                                const OnProgress& on_progress = {});
  // Returns the confusion matrix of the last run(); nullopt if none was counted.
  const std::optional<ConfusionMatrix>& confusion() const noexcept { return confusion_; }

 private:
  const Graph& graph_;
  const Dataset& dataset_;
  const bool counts_classes_;
  std::optional<ConfusionMatrix> confusion_;
  std::int64_t batches_of_all_;
  std::int64_t first_batch_;
  std::int64_t end_batch_;
  std::unique_ptr<DatasetRange> samples_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<BatchSource> batches_;
};

// Computes the result of an evaluation by adding the sums of all batches in batch order. The caller
// sets `seconds` of the result. loss: the network's loss. confusion: the counts of all samples, if
// they were counted. Throws FileError if all samples were bad, or if more samples were bad than the
// data set allows.
Evaluation add_up(std::span<const Scores> sums, LossKind loss, const Dataset& dataset,
                  std::optional<ConfusionMatrix> confusion = {});

// Evaluates one data set with all replicas of a synchronous strategy.
class Evaluator {
 public:
  // Makes an evaluator; all arguments must outlive it.
  Evaluator(Strategy& strategy, const Graph& graph, const Dataset& dataset,
            const EvaluationOptions& options = {});

  // Evaluates the data set; every task calls this function. If `stop` returns a signal on one task,
  // returns nullopt on all tasks, and stopped_by() then returns this signal. Throws what the data
  // set throws, and PeerError.
  std::optional<Evaluation> run(const StopPoll& stop, const OnProgress& on_progress = {});
  std::string_view stopped_by() const noexcept { return stopped_by_; }
  const EvaluationOptions& options() const noexcept { return options_; }

 private:
  Strategy& strategy_;
  const Graph& graph_;
  EvaluationOptions options_;
  const Dataset& dataset_;
  // The arenas with the moving averages, one per replica of this task; empty if moving averages are
  // not evaluated.
  std::vector<std::unique_ptr<ParameterArena>> averages_;
  std::vector<std::unique_ptr<PartialEvaluator>> parts_;  // one per replica of this task
  std::string_view stopped_by_;
};

// Evaluates snapshots of the variables while training goes on. Used by a worker to which an
// asynchronous job has assigned a snapshot. The network is compiled at the first evaluation. One
// thread only: the thread that uses the backend.
class SnapshotEvaluator {
 public:
  // Makes an evaluator of snapshots; all arguments must outlive it.
  SnapshotEvaluator(Backend& backend, const Graph& graph, const Dataset& dataset,
                    const EvaluationOptions& options);
  ~SnapshotEvaluator();

  // Evaluates a copy of the snapshot's values and state. The result is bit-identical to the result
  // of Evaluator for the same values. Returns nullopt if `stop` returned true. Throws ShapeError
  // for a snapshot of another network, and what PartialEvaluator throws.
  std::optional<Evaluation> run(const Snapshot& snapshot, const std::function<bool()>& stop,
                                const OnProgress& on_progress = {});

 private:
  struct Compiled;

  Backend& backend_;
  const Graph& graph_;
  const Dataset& dataset_;
  EvaluationOptions options_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace syncopate
