// The device on which all virtual workers compute, one after the other. It has one compiled network
// with one arena. Before a worker computes, the worker's values and running statistics are loaded
// into the device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "models/backend/backend.h"
#include "models/graph/graph.h"
#include "strategies/snapshot.h"
#include "strategies/strategy.h"
#include "worker/input/dataset.h"
#include "worker/train/evaluate.h"

namespace syncopate::bench {

// The network on which all virtual workers compute. One thread only.
class VirtualDevice {
 public:
  // Compiles `graph` and sets the initial values that follow from the seed in `options`. test: the
  // split that evaluate() reads. `graph` and `test` must outlive the device. Throws what
  // Backend::compile() throws.
  VirtualDevice(const StrategyOptions& options, const Graph& graph, const Dataset& test,
                const EvaluationOptions& evaluation);

  const Backend& backend() const noexcept { return *backend_; }
  const Tensor& values() const noexcept { return arena_->values(); }        // f32, [total]
  const Tensor& gradients() const noexcept { return arena_->gradients(); }  // f32, [total]
  std::span<float> state() const noexcept { return state_->values.f32(); }

  // Marks all values as changed, so that the model reads the new values. Must be called after a
  // write to the tensor values().
  void note_written() { arena_->bump_all_versions(); }
  // Sets values and running statistics as `train --init-from file` does. Throws what load_weights()
  // throws.
  void load_weights(const std::filesystem::path& file, std::uint64_t seed);
  // Sets the device's values. values: [total] f32, or values() itself.
  void load(std::span<const float> values);
  // Runs the forward and the backward pass with the loaded values, and writes the gradients to
  // gradients(). state: the worker's running statistics, which are updated; empty if they are not
  // needed.
  Scores train(const Batch& batch, std::span<float> state);
  // Lets the optimizer update the loaded values by gradients().
  void update(const OptimizerSlots& slots, const UpdateStep& step);
  // Evaluates the loaded values, with the running statistics `state`, on the split `test`.
  Evaluation evaluate(std::span<const float> state);
  // Evaluates the loaded values, with the running statistics `state`, on `split`.
  Evaluation evaluate_on(const Dataset& split, std::span<const float> state);

 private:
  const Graph& graph_;
  EvaluationOptions evaluation_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<StateBlock> state_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<PartialEvaluator> evaluator_;
  const Dataset& test_;
};

}  // namespace syncopate::bench
