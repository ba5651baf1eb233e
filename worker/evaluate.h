// Exact evaluation: every sample of a dataset exactly once, the short tail included, with the
// weights a replica has at that moment. Called by the train loop and by `syncopate evaluate`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "models/backend/backend.h"
#include "worker/input/batch_source.h"

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

// One thread only.
class Evaluator {
 public:
  // Compiles the network once, on the replica's own arena and state. All arguments must outlive the
  // evaluator. Throws what Backend::compile and make_batch_source throw.
  Evaluator(Backend& backend, const Graph& graph, ParameterArena& arena, StateBlock& state,
            const Dataset& dataset, EvaluationOptions options = {});

  // Nothing when `stop` cut it short; then `stopped_by()` has its word. Throws what the dataset
  // throws.
  std::optional<Evaluation> run(const StopPoll& stop);
  std::string_view stopped_by() const noexcept { return stopped_by_; }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<BatchSource> batches_;
  std::int64_t dataset_size_;
  std::string_view stopped_by_;
};

}  // namespace syncopate
