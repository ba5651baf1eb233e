// Exact evaluation: every sample of a dataset exactly once, the short tail included, with the
// weights the replicas have at that moment. Whole batches are dealt out over all replicas, and
// their sums are added in the order of the batches: the result does not depend on how many replicas
// measured. Called by the train loop and by `syncopate evaluate`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/backend/backend.h"
#include "strategies/strategy.h"
#include "worker/input/batch_source.h"
#include "worker/input/dataset.h"
#include "worker/train/progress.h"

namespace syncopate {

struct Evaluation {
  double loss = 0.0;      // mean over the samples
  double accuracy = 0.0;  // fraction of the samples that were right
  std::int64_t samples = 0;
  double seconds = 0.0;
};

// Asked between steps and batches; a value (a signal's name) means: stop.
using StopPoll = std::function<std::optional<std::string_view>()>;

struct EvaluationOptions {
  // Fixed, not the training batch, so that the train loop and `evaluate` add in the same order.
  std::int64_t batch_size = 128;
  int threads = 1;  // that read samples
};

// What one batch adds to the result.
struct BatchSums {
  double loss = 0.0;
  double num_correct = 0.0;
  double num_samples = 0.0;
};

// One replica's part of the batches. One thread only.
class PartialEvaluator {
 public:
  // Compiles the network once, on the replica's own arena and state. All arguments must outlive the
  // evaluator. Throws what Backend::compile and make_batch_source throw.
  PartialEvaluator(Backend& backend, const Graph& graph, ParameterArena& arena, StateBlock& state,
                   const Dataset& dataset, const EvaluationOptions& options, int part = 0,
                   int parts = 1);

  std::int64_t batches_of_all() const noexcept { return batches_of_all_; }
  // Fills sums[b] of the batches of this part; sums has batches_of_all() elements, and those of
  // other parts stay as they are. Ends early when `stop` returns true. on_progress counts the
  // batches of this part; may be empty. Throws what the dataset throws.
  void run(const std::function<bool()>& stop, std::span<BatchSums> sums,
           const OnProgress& on_progress = {});

 private:
  std::int64_t batches_of_all_;
  std::int64_t first_batch_;
  std::int64_t end_batch_;
  std::unique_ptr<DatasetRange> samples_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<BatchSource> batches_;
};

// The sums, added in order of the batches; seconds are the caller's.
Evaluation add_up(std::span<const BatchSums> sums, std::int64_t dataset_size);

// All replicas' parts together.
class Evaluator {
 public:
  // All arguments must outlive the evaluator.
  Evaluator(Strategy& strategy, const Graph& graph, const Dataset& dataset,
            const EvaluationOptions& options = {});

  // Every task calls. Nothing, on all of them, when `stop` spoke on one; then `stopped_by()` has a
  // word. Throws what the dataset throws, and PeerError.
  std::optional<Evaluation> run(const StopPoll& stop, const OnProgress& on_progress = {});
  std::string_view stopped_by() const noexcept { return stopped_by_; }

 private:
  Strategy& strategy_;
  std::int64_t dataset_size_;
  std::vector<std::unique_ptr<PartialEvaluator>> parts_;  // by local replica
  std::string_view stopped_by_;
};

// Exact evaluation of a copy of the variables, while those that it was taken from train on. Called
// by a worker of an asynchronous job that was appointed to it.

// One thread only: the one that uses the backend.
class SnapshotEvaluator {
 public:
  // Compiles nothing yet. All arguments must outlive the evaluator.
  SnapshotEvaluator(Backend& backend, const Graph& graph, const Dataset& dataset,
                    const EvaluationOptions& options);
  ~SnapshotEvaluator();

  // Values and state are copied in. The result has the bits that Evaluator gives for the same
  // values. Nothing when `stop` said true. Throws ShapeError for blocks of another network, and
  // what PartialEvaluator throws.
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
