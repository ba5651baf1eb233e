// Exact evaluation of a copy of the variables, while those that it was taken from train on. Called
// by a worker of an asynchronous job that was appointed to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "worker/train/evaluate.h"

namespace syncopate {

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
  std::optional<Evaluation> run(const Snapshot& snapshot, const std::function<bool()>& stop);

 private:
  struct Compiled;

  Backend& backend_;
  const Graph& graph_;
  const Dataset& dataset_;
  EvaluationOptions options_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace syncopate
