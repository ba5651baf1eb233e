#include "worker/evaluate.h"

#include <algorithm>
#include <chrono>

#include "models/base/errors.h"

namespace syncopate {

Evaluator::Evaluator(Backend& backend, const Graph& graph, ParameterArena& arena, StateBlock& state,
                     const Dataset& dataset, EvaluationOptions options)
    : dataset_size_(dataset.size()) {
  const std::int64_t batch_size = std::min(options.batch_size, dataset_size_);
  batches_ = make_batch_source(dataset, {.batch_size = batch_size,
                                         .shuffle = false,
                                         .drop_remainder = false,
                                         .threads = options.threads});
  model_ =
      backend.compile(graph, arena, state, {.mode = Mode::kEvaluate, .batch_size = batch_size});
}

std::optional<Evaluation> Evaluator::run(const StopPoll& stop) {
  const auto begun = std::chrono::steady_clock::now();
  Evaluation total;
  std::int64_t num_correct = 0;
  double loss_sum = 0.0;
  while (total.samples < dataset_size_) {
    if (const auto reason = stop()) {
      stopped_by_ = *reason;
      return std::nullopt;
    }
    const Batch& batch = batches_->next();
    const Scores scores = model_->forward(batch, [](BucketId) {});
    // The tail is divided by its own count: back to sums before they are added.
    loss_sum += scores.loss * static_cast<double>(batch.loss_divisor);
    num_correct += scores.num_correct;
    total.samples += scores.num_samples;
  }
  check(total.samples == dataset_size_, "an evaluation counts every sample exactly once");
  total.loss = loss_sum / static_cast<double>(total.samples);
  total.accuracy = static_cast<double>(num_correct) / static_cast<double>(total.samples);
  total.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return total;
}

}  // namespace syncopate
