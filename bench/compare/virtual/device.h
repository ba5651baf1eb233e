// The one device on which all virtual workers compute, one after the other: a compiled network with
// its arena. A worker is no more than the values and the running statistics that are laid into it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "models/backend/backend.h"
#include "models/graph/graph.h"
#include "strategies/strategy.h"
#include "worker/input/dataset.h"
#include "worker/train/evaluate.h"

namespace syncopate::bench {

// One thread only.
class VirtualDevice {
 public:
  // Holds the seed's first values. Graph and dataset outlive it. Throws what Backend::compile
  // throws.
  VirtualDevice(const StrategyOptions& options, const Graph& graph, const Dataset& test,
                const EvaluationOptions& evaluation);

  const Backend& backend() const noexcept { return *backend_; }
  const Tensor& values() const noexcept { return arena_->values(); }        // [total] f32
  const Tensor& gradients() const noexcept { return arena_->gradients(); }  // [total] f32
  std::span<float> state() const noexcept { return state_->values.f32(); }

  // The values were written from outside.
  void note_written() { arena_->bump_all_versions(); }
  // values: [total] f32, or those of the arena itself.
  void load(std::span<const float> values);
  // Forward and backward on the loaded values: gradients() holds the outcome. `state` are the
  // worker's running statistics, which advance; empty: nobody asks for them.
  Scores train(const Batch& batch, std::span<float> state);
  // Of the loaded values, with these running statistics.
  Evaluation evaluate(std::span<const float> state);

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<StateBlock> state_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<PartialEvaluator> evaluator_;
  std::int64_t test_size_;
};

}  // namespace syncopate::bench
